import ArgumentParser
import FreshetControl
import FreshetRender

struct Edit: Verb {
    static let configuration = CommandConfiguration(
        commandName: "edit",
        abstract: "Edit a pipeline's file, check it, install it, reload.",
        discussion: """
            Opens a copy in $SYSTEMD_EDITOR, $EDITOR or $VISUAL, else in nano, vim or vi. What was saved is checked together \
            with all other files before anything is installed; faults are shown, and the editor can be opened again, or the \
            edit given up: then the text is kept, and its path told. What passes takes the file's place as a whole, with its \
            owner, mode and ACL, and the daemon reads it. Nothing happens if nothing was changed. A file of /usr/lib/freshet is \
            left alone: its copy in /etc/freshet counts before it. With --config-dir, the first directory is written to.

            Exit status: 0 done, or nothing was changed; 1 it failed; 69 installed, and the daemon does not run; 77 this user \
            may not do it; 78 given up with faults, or installed and not read because of faults elsewhere.

            Examples:
              freshetctl edit jwks
              freshetctl edit --new rates
              freshetctl edit --new keys --from jwks-discovery
              freshetctl edit --drop-in jwks
              freshetctl edit --examples
            """)

    @Argument(help: "The pipeline.") var name: String?
    @Flag(help: "Make a new pipeline.") var new = false
    @Option(help: ArgumentHelp("With --new: begin with this example.", valueName: "example")) var from: String?
    @Flag(help: "List the examples that --from takes.") var examples = false
    @Flag(help: "Edit what is laid over the file (NAME.yaml.d/override.yaml), and leave the file alone.")
    var dropIn = false
    @OptionGroup var search: ConfigurationOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if examples {
            guard name == nil, !new, from == nil, !dropIn else { throw ValidationError("--examples goes alone.") }
            return
        }
        guard name != nil else { throw ValidationError("Name the pipeline to edit.") }
        if from != nil, !new { throw ValidationError("--from goes with --new.") }
        if new, dropIn { throw ValidationError("Give --new or --drop-in, but not both.") }
        if options.json { throw ValidationError("An editor has no JSON.") }
    }

    func run(_ session: Session) throws(CommandFailure) {
        if examples { return list(session) }
        guard let name else { return }
        guard session.context.answer != nil, session.context.talkColumns != nil else {
            throw CommandFailure(
                .failure, "there is no terminal to edit at; write the file, then: freshetctl check && freshetctl reload"
            )
        }
        let editor = try Editor.find(session.context)
        let places = directories(session)
        var request = EditPlan.Request(name: name, directories: places)
        request.isNew = new
        request.example = from
        request.isDropIn = dropIn
        request.examples = Self.exampleDirectories(session.context)
        let plan = try EditPlan.find(request)
        let directory = EditedFile.directory(of: plan.target)
        guard EditedFile.mayWrite(in: directory) else {
            throw CommandFailure(.notPermitted, "you may not write in '\(directory)'; do it as root")
        }
        guard !plan.target.contains("=") else {
            throw CommandFailure(
                .failure, "'\(plan.target)' has a '=' in it, and 'freshetd --check' could not judge the copy")
        }
        // What is checked is what is written to, also where a directory is only made now.
        try EditSession(
            plan: plan, editor: editor,
            checking: places == EditPlan.systemDirectories ? session.systemsConfiguration : places,
            session: session
        ).run()
    }

    /// Where files are looked for, and written, the highest first.
    private func directories(_ session: Session) -> [String] {
        if !search.configDir.isEmpty { return search.configDir }
        if let named = session.context.environment["CONFIGURATION_DIRECTORY"], !named.isEmpty, named != "/etc/freshet" {
            return named.split(separator: ":").map(String.init)
        }
        if session.isPersonalDaemon == true, let own = Session.personalConfiguration(session.context.environment) {
            return [own]
        }
        return EditPlan.systemDirectories
    }

    // MARK: Examples

    /// Beside this program's own place, as `make install` has it, and that of packages.
    static func exampleDirectories(_ context: CommandContext) -> [String] {
        var roots: [String] = []
        if let own = context.ownPath {
            let parts = own.split(separator: "/")
            if parts.count > 2 {
                roots.append("/" + parts.dropLast(2).joined(separator: "/") + "/share/doc/freshet/examples")
            }
        }
        if !roots.contains("/usr/share/doc/freshet/examples") { roots.append("/usr/share/doc/freshet/examples") }
        return roots.flatMap { ["\($0)/uses", "\($0)/pipelines"] }
    }

    private func list(_ session: Session) {
        let directories = Self.exampleDirectories(session.context)
        let examples = EditPlan.examples(in: directories).sorted { $0.key < $1.key }
        guard !examples.isEmpty else {
            return session.say("No examples are installed: looked in \(directories.joined(separator: ", ")).")
        }
        session.print(
            Table(
                columns: [.init("EXAMPLE"), .init("FOR", shrinksTo: 20)],
                rows: examples.map { [Table.Cell($0.key), Table.Cell(EditPlan.summary(ofExample: $0.value))] }),
            total:
                "\(Count.text(examples.count, "example")): 'freshetctl edit --new NAME --from EXAMPLE' begins with one."
        )
    }
}

/// The editor of whoever is at the terminal.
struct Editor: Hashable {
    var path: String
    /// What the environment has behind its name.
    var arguments: [String]

    /// As systemctl has it: the environment's, then what there usually is.
    static func find(_ context: CommandContext) throws(CommandFailure) -> Editor {
        for variable in ["SYSTEMD_EDITOR", "EDITOR", "VISUAL"] {
            guard let words = context.environment[variable]?.split(separator: " ").map(String.init),
                let first = words.first
            else { continue }
            guard let path = context.program(first) else {
                throw CommandFailure(.failure, "there is no program '\(first)', which $\(variable) names as the editor")
            }
            return Editor(path: path, arguments: Array(words.dropFirst()))
        }
        for name in ["editor", "nano", "vim", "vi"] {
            if let path = context.program(name) { return Editor(path: path, arguments: []) }
        }
        throw CommandFailure(.failure, "there is no editor; name one in $EDITOR")
    }
}
