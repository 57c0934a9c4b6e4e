import ArgumentParser
import FreshetControl
import FreshetRender

struct Prune: Verb {
    static let configuration = CommandConfiguration(
        commandName: "prune",
        abstract: "Remove what no configured pipeline owns.",
        discussion: """
            Shows the pipelines that are not configured any more and of which the cache still has something, asks, and removes \
            it: their copies, their generations, and all that is remembered of them. Where standard input is no terminal, \
            --yes has to be given. A pipeline whose file has faults is configured, and so is one whose file was not reloaded \
            yet. If something of one is left, since the disk refuses for instance, the others are removed; both are listed \
            then, with the reason, and with --json as pipelines and failed. What is left goes the next time.

            Exit status: 0 it is removed, or there is nothing; 1 it was not removed, or not all of it.

            Examples:
              freshetctl prune --dry-run
              freshetctl prune
              freshetctl prune --yes
            """)

    @Flag(name: [.customShort("n"), .long], help: "Show what would be removed, and remove nothing.") var dryRun = false
    @Flag(name: .shortAndLong, help: "Do not ask.") var yes = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if dryRun, yes { throw ValidationError("--dry-run removes nothing, and --yes is for removing.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        var unowned: [UnownedPipeline] = []
        try session.asking { () throws(ControlClient.Failure) in
            try client.unowned { unowned += $0 }
        }
        if dryRun {
            if options.json { return session.print(json: ControlMessage.Unowned(pipelines: unowned)) }
            return show(unowned, session)
        }
        if !options.json { show(unowned, session) }
        if !unowned.isEmpty { try confirm(unowned, session) }
        let pruned = try remove(unowned.map(\.name), client, session)
        if options.json { session.print(json: pruned) }
        guard pruned.failed.isEmpty else { return try tell(pruned, of: unowned.count, session) }
        if !options.json, !unowned.isEmpty { session.say("removed: \(total(of: pruned.pipelines))") }
    }

    /// Has it removed, in pieces. Where one of these is refused, or the daemon goes away, those before it are done.
    private func remove(
        _ names: [String], _ client: ControlClient, _ session: Session
    ) throws(CommandFailure) -> ControlMessage.Pruned {
        var pruned = ControlMessage.Pruned()
        var rest = names[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(ControlDispatcher.unownedPerReply))
            do throws(ControlClient.Failure) {
                let reply = try client.prune(piece)
                pruned.pipelines += reply.pipelines
                pruned.failed += reply.failed
            } catch {
                let failure = session.failure(error)
                // Of what is refused nothing has gone; of what was not answered, some may have.
                var doubtful = piece.count
                if case .refused = error { doubtful = 0 }
                if doubtful == 0, pruned == ControlMessage.Pruned() { throw failure }
                let reason = failure.message.split(separator: "\n").first.map(String.init) ?? ""
                for (offset, name) in rest.enumerated() {
                    let doubt = offset < doubtful ? "it is not known whether it was removed: " : ""
                    pruned.failed.append(UnprunedPipeline(name: name, reason: doubt + reason))
                }
                return pruned
            }
            rest = rest.dropFirst(piece.count)
        }
        return pruned
    }

    /// Lists what was removed and what was not.
    private func tell(
        _ pruned: ControlMessage.Pruned, of count: Int, _ session: Session
    ) throws(CommandFailure) {
        if !options.json {
            for pipeline in pruned.pipelines { session.say(DisplayText.harmless("removed: \(pipeline.name)")) }
            for pipeline in pruned.failed {
                session.context.talk(DisplayText.harmless("not removed: \(pipeline.name): \(pipeline.reason)") + "\n")
            }
        }
        throw CommandFailure(
            .failure,
            "\(pruned.failed.count) of \(Count.text(count, "pipeline")) \(pruned.failed.count == 1 ? "was" : "were") "
                + "not removed, or not wholly")
    }

    private func show(_ unowned: [UnownedPipeline], _ session: Session) {
        guard !unowned.isEmpty else { return session.say("Nothing: all that the cache has is a pipeline's.") }
        let table = Table(
            columns: [
                .init("PIPELINE", shrinksTo: 8), .init("FILE", shrinksTo: 8), .init("GENERATIONS", .right),
                .init("SIZE", .right), .init("COMMITTED"),
            ],
            rows: unowned.map { pipeline in
                [
                    Table.Cell(pipeline.name), Table.Cell(pipeline.file ?? "-"), Table.Cell("\(pipeline.generations)"),
                    Table.Cell(SizeText.bytes(pipeline.bytes)),
                    Table.Cell(pipeline.committedAt.map(session.times.absolute) ?? "-"),
                ]
            })
        session.print(table, total: total(of: unowned) + ".")
    }

    private func confirm(_ unowned: [UnownedPipeline], _ session: Session) throws(CommandFailure) {
        if yes { return }
        guard let answer = session.context.answer else {
            throw CommandFailure(
                .failure, "nothing was removed: standard input is no terminal to ask at, and --yes was not given")
        }
        session.context.talk("Remove all of this? [y/N] ")
        guard ["y", "yes"].contains(answer()?.lowercased()) else {
            throw CommandFailure(.failure, "nothing was removed")
        }
    }

    private func total(of pipelines: [UnownedPipeline]) -> String {
        let generations = Int(pipelines.reduce(0) { $0 + $1.generations })
        let bytes = pipelines.reduce(0) { $0 + $1.bytes }
        return "\(Count.text(pipelines.count, "pipeline")), \(Count.text(generations, "generation")), "
            + SizeText.bytes(bytes)
    }
}
