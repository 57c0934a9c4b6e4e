import ArgumentParser
import FreshetControl
import FreshetRender

struct Prune: Verb {
    static let configuration = CommandConfiguration(
        commandName: "prune",
        abstract: "Remove copies of pipelines that are not configured.",
        discussion: """
            Lists pipelines that are no longer configured but still in the cache, asks, and removes their copies, \
            their generations and their records. If standard input is not a terminal, --yes is required. A pipeline \
            whose file has errors, or is not loaded yet, counts as configured. If a pipeline cannot be removed, for \
            example because of an error of the disk, the others are removed; both are listed with the reason, with \
            --json as pipelines and failed. The next prune removes the rest.

            Exit status: 0 removed, or nothing to remove; 1 not removed, or only in part.

            Examples:
              freshetctl prune --dry-run
              freshetctl prune
              freshetctl prune --yes
            """)

    @Flag(name: [.customShort("n"), .long], help: "Only list what would be removed.") var dryRun = false
    @Flag(name: .shortAndLong, help: "Remove without asking.") var yes = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if dryRun, yes { throw ValidationError("Give --dry-run or --yes, but not both.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        var unowned: [UnownedPipeline] = []
        try session.callDaemon { () throws(ControlClient.Failure) in
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
        guard pruned.failed.isEmpty else { return try report(pruned, of: unowned.count, session) }
        if !options.json, !unowned.isEmpty { session.message("removed: \(total(of: pruned.pipelines))") }
    }

    /// Removes the pipelines, a number of them with each call. If a call fails, the result of the calls before is kept.
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
                // A refused call has removed nothing; a call without an answer may have removed some.
                var doubtful = piece.count
                if case .refused = error { doubtful = 0 }
                if doubtful == 0, pruned == ControlMessage.Pruned() { throw failure }
                let reason = failure.message.split(separator: "\n").first.map(String.init) ?? ""
                for (offset, name) in rest.enumerated() {
                    let doubt = offset < doubtful ? "may or may not be removed: " : ""
                    pruned.failed.append(UnprunedPipeline(name: name, reason: doubt + reason))
                }
                return pruned
            }
            rest = rest.dropFirst(piece.count)
        }
        return pruned
    }

    /// Prints which pipelines were removed and which were not.
    private func report(
        _ pruned: ControlMessage.Pruned, of count: Int, _ session: Session
    ) throws(CommandFailure) {
        if !options.json {
            for pipeline in pruned.pipelines { session.message(DisplayText.harmless("removed: \(pipeline.name)")) }
            for pipeline in pruned.failed {
                session.context.printError(
                    DisplayText.harmless("not removed: \(pipeline.name): \(pipeline.reason)") + "\n")
            }
        }
        throw CommandFailure(
            .failure,
            "\(pruned.failed.count) of \(Count.text(count, "pipeline")) \(pruned.failed.count == 1 ? "was" : "were") "
                + "not removed, or only in part")
    }

    private func show(_ unowned: [UnownedPipeline], _ session: Session) {
        guard !unowned.isEmpty else { return session.message("Nothing to prune.") }
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
                .failure, "nothing was removed: standard input is not a terminal; confirm with --yes")
        }
        session.context.printError("Remove all of this? [y/N] ")
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
