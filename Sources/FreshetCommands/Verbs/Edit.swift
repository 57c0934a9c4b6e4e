import ArgumentParser
import FreshetControl
import FreshetRender

struct Edit: Verb {
    static let configuration = CommandConfiguration(
        commandName: "edit",
        abstract: "Edit a pipeline or hook, check it, install it, reload.",
        discussion: """
            Opens a copy of the file in $SYSTEMD_EDITOR, $EDITOR or $VISUAL, else in editor, nano, vim or vi. Then \
            checks the copy together with all other files. If the copy has errors, you can edit it again, or give up: \
            then the copy is kept and its path printed. A valid copy replaces the file as a whole, with its owner, \
            mode and ACL, and the daemon reloads. Nothing happens if you change nothing. Files in /usr/lib/freshet \
            are not changed: the copy is installed in /etc/freshet, which has precedence. With --config-dir, the copy \
            is installed in the first directory. Root edits no file that another user could replace.

            Exit status: 0 installed, or nothing was changed; 1 failure; 69 installed, but the daemon does not run; 77 \
            permission denied; 78 given up with errors, or installed but refused by the daemon because of errors \
            elsewhere.

            Examples:
              freshetctl edit jwks
              freshetctl edit --new rates
              freshetctl edit --new keys --from jwks-discovery
              freshetctl edit --drop-in jwks
              freshetctl edit --examples
              freshetctl edit --hook shop
              freshetctl edit --hook --new shop
            """)

    @Argument(help: "The pipeline; with --hook, the hook.") var name: String?
    @Flag(help: "Edit a hook of several pipelines (hooks/NAME.yaml), not a pipeline.") var hook = false
    @Flag(help: "Make a new pipeline or hook.") var new = false
    @Option(help: ArgumentHelp("With --new: start from this example.", valueName: "example")) var from: String?
    @Flag(help: "List the examples that --from takes.") var examples = false
    @Flag(help: "Edit a drop-in (NAME.yaml.d/override.yaml), not the file itself.")
    var dropIn = false
    @OptionGroup var search: ConfigurationOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if examples {
            guard name == nil, !new, from == nil, !dropIn else {
                throw ValidationError("Give --examples alone, or with --hook.")
            }
            return
        }
        guard name != nil else { throw ValidationError("Name the \(kind) to edit.") }
        if from != nil, !new { throw ValidationError("--from needs --new.") }
        if new, dropIn { throw ValidationError("Give --new or --drop-in, but not both.") }
        if options.json { throw ValidationError("edit has no JSON output.") }
    }

    private var kind: EditPlan.Kind { hook ? .hook : .pipeline }

    func run(_ session: Session) throws(CommandFailure) {
        if examples { return list(session) }
        guard let name else { return }
        guard session.context.answer != nil, session.context.errorColumns != nil else {
            throw CommandFailure(
                .failure,
                "edit needs a terminal; without one, write the file, then: freshetctl check && freshetctl reload")
        }
        let editor = try Editor.find(session.context)
        let places = directories(session)
        var request = EditPlan.Request(name: name, directories: places)
        request.kind = kind
        request.isNew = new
        request.example = from
        request.isDropIn = dropIn
        request.examples = Self.exampleDirectories(kind, session.context)
        let plan = try EditPlan.find(request) { (path) throws(CommandFailure) in
            try EditTrust.check(path, user: session.context.user)
        }
        let directory = EditedFile.directory(of: plan.target)
        guard EditedFile.mayWrite(in: directory) else {
            throw CommandFailure(.notPermitted, "permission denied: cannot write in '\(directory)'; be root")
        }
        guard !plan.target.contains("=") else {
            throw CommandFailure(
                .failure, "'\(plan.target)' has a '=' in it, and 'freshetd --check' cannot check such a path")
        }
        // The directories to check include the one of the new file, also if that directory does not exist yet.
        try EditSession(
            plan: plan, editor: editor,
            checking: places == EditPlan.systemDirectories ? session.systemsConfiguration : places,
            session: session
        ).run()
    }

    /// The directories of the configuration, in the order of precedence; files are written to the first.
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

    /// The directories of the examples: relative to this executable, as `make install` installs them; then those of
    /// packages.
    static func exampleDirectories(_ kind: EditPlan.Kind, _ context: CommandContext) -> [String] {
        var roots: [String] = []
        if let own = context.ownPath {
            let parts = own.split(separator: "/")
            if parts.count > 2 {
                roots.append("/" + parts.dropLast(2).joined(separator: "/") + "/share/doc/freshet/examples")
            }
        }
        if !roots.contains("/usr/share/doc/freshet/examples") { roots.append("/usr/share/doc/freshet/examples") }
        return roots.flatMap { kind == .hook ? ["\($0)/hooks"] : ["\($0)/uses", "\($0)/pipelines"] }
    }

    /// The least width of the text of an example.
    private static let leastColumns = 20

    /// The rows of the list of examples. A text is wrapped, because its end can be what distinguishes the example.
    ///
    /// - Parameter columns: the width of the terminal; nil: no limit.
    static func rows(_ examples: [(name: String, text: String)], columns: Int?) -> [[Table.Cell]] {
        let nameColumns = examples.map { DisplayText.width(of: $0.name) }.reduce("EXAMPLE".count, max) + 1
        return examples.flatMap { name, text in
            let lines = columns.map { WrappedText.lines(text, columns: max(leastColumns, $0 - nameColumns)) }
            return (lines ?? [text]).enumerated().map { [Table.Cell($0 == 0 ? name : ""), Table.Cell($1)] }
        }
    }

    private func list(_ session: Session) {
        let directories = Self.exampleDirectories(kind, session.context)
        let examples = EditPlan.examples(in: directories).sorted { $0.key < $1.key }
        guard !examples.isEmpty else {
            return session.message("No examples are installed: looked in \(directories.joined(separator: ", ")).")
        }
        session.print(
            Table(
                columns: [.init("EXAMPLE"), .init("FOR")],
                rows: Self.rows(
                    examples.map { ($0.key, EditPlan.summary(ofExample: $0.value)) }, columns: session.context.columns)),
            total:
                "\(Count.text(examples.count, "example")): 'freshetctl edit \(hook ? "--hook " : "")--new NAME --from EXAMPLE' "
                + "starts from one."
        )
    }
}

/// The editor of the user.
struct Editor: Hashable {
    var path: String
    /// The arguments after the name in the environment variable.
    var arguments: [String]

    /// Chooses as systemctl does: from the environment, else a common editor.
    static func find(_ context: CommandContext) throws(CommandFailure) -> Editor {
        for variable in ["SYSTEMD_EDITOR", "EDITOR", "VISUAL"] {
            guard let words = context.environment[variable]?.split(separator: " ").map(String.init),
                let first = words.first
            else { continue }
            guard let path = context.program(first) else {
                throw CommandFailure(.failure, "the editor '\(first)' of $\(variable) is not installed")
            }
            return Editor(path: path, arguments: Array(words.dropFirst()))
        }
        for name in ["editor", "nano", "vim", "vi"] {
            if let path = context.program(name) { return Editor(path: path, arguments: []) }
        }
        throw CommandFailure(.failure, "no editor is installed; name one in $EDITOR")
    }
}
