import FreshetControl
import FreshetRender

/// An edit: the editor, the check, the installation and the reload.
struct EditSession {
    let plan: EditPlan
    let editor: Editor
    /// The directories to check; if empty, the usual ones.
    let checking: [String]
    let session: Session

    private var context: CommandContext { session.context }
    private var target: String { DisplayText.harmless(plan.target) }

    func run() throws(CommandFailure) {
        let file: EditedFile
        let copy: String
        do throws(EditFailure) {
            // With the text that was read for the plan: a later change is a change by somebody else.
            file = try EditedFile(plan.target, content: plan.isNew ? nil : plan.text)
            copy = try EditedFile.scratch(
                String(plan.target.split(separator: "/").last ?? "pipeline.yaml"), plan.text,
                in: context.environment["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp")
        } catch {
            throw error.failure
        }
        var isKept = false
        defer { if !isKept { EditedFile.removeScratch(copy) } }
        do throws(CommandFailure) {
            guard let text = try edited(copy, file) else { return session.message("Nothing was changed.") }
            try reportingFailure { () throws(EditFailure) in try file.makeDirectories() }
            // Again, for a directory that was missing: in a shared directory such as /tmp another user can make it.
            try EditTrust.check(plan.target, user: context.user)
            try reportingFailure { () throws(EditFailure) in try file.replace(with: text, like: plan.source) }
        } catch {
            isKept = true
            throw CommandFailure(error.status, error.message + (error.message.isEmpty ? "" : "\n") + kept(copy))
        }
        session.message("\(plan.isNew ? "made" : "changed"): \(target)")
        try reload()
    }

    private func kept(_ copy: String) -> String {
        "Nothing was installed; your text is in \(DisplayText.harmless(copy))"
    }

    // MARK: Editing and checking

    /// Lets the user edit the copy until it is valid. Nil if there is nothing to install.
    private func edited(_ copy: String, _ file: EditedFile) throws(CommandFailure) -> [UInt8]? {
        while true {
            let before = FileStamp(copy)
            try open(copy)
            guard let text = try reportingFailure({ () throws(EditFailure) in try EditedFile.content(of: copy) }) else {
                throw CommandFailure(.failure, "the editor has removed the file")
            }
            // An unchanged example is installed if it was saved.
            if text == plan.text, !(plan.isExample && FileStamp(copy) != before) { return nil }
            if plan.isNew, EditPlan.isEmpty(text) {
                guard text.contains(where: { !EditPlan.isSpace($0) }) else { return nil }
                throw CommandFailure(.failure, "the file has only comments")
            }
            guard try isValid(copy) else {
                guard isConfirmed("What now? [E]dit again, [g]ive up: ") else { throw CommandFailure(.configuration) }
                continue
            }
            guard try reportingFailure({ () throws(EditFailure) in try file.hasChanged() }) else { return text }
            session.context.printError("\(target) was changed by somebody else meanwhile.\n")
            switch answer("What now? [e]dit again, [o]verwrite it, [G]ive up: ") {
            case "o", "overwrite": return text
            case "e", "edit": continue
            default: throw CommandFailure(.failure)
            }
        }
    }

    private func open(_ copy: String) throws(CommandFailure) {
        switch context.child(editor.path, editor.arguments + [copy], .shared) {
        case .ended(status: 0, _, _): return
        case .ended(let status, _, _):
            throw CommandFailure(
                .failure, "the editor '\(DisplayText.harmless(editor.path))' ended with status \(status)")
        case .failed(let reason):
            throw CommandFailure(.failure, "cannot run the editor '\(DisplayText.harmless(editor.path))': \(reason)")
        }
    }

    /// Checks the whole configuration with the copy in place of the target, and prints the errors. Errors of other
    /// files that existed before do not prevent the installation.
    private func isValid(_ copy: String) throws(CommandFailure) -> Bool {
        let diagnostics = try check(instead: copy)
        let errors = diagnostics.filter { $0.severity == .error }
        var inherited: Set<ConfigurationDiagnostic> = []
        if errors.contains(where: { $0.file != plan.target }) { inherited = Set(try check(instead: nil)) }
        for diagnostic in diagnostics where diagnostic.severity != .error ? diagnostic.file == plan.target : true {
            context.printError(DiagnosticView.text(diagnostic) + "\n")
        }
        return errors.allSatisfy { $0.file != plan.target && inherited.contains($0) }
    }

    private func check(instead copy: String?) throws(CommandFailure) -> [ConfigurationDiagnostic] {
        let candidates = Check.candidates(ownPath: context.ownPath)
        guard let freshetd = candidates.first(where: context.isExecutable) else {
            throw CommandFailure(
                .failure,
                "freshetd, which checks the file, is not installed: looked for \(candidates.joined(separator: ", "))")
        }
        let arguments =
            ["--check", "--json"] + (copy.map { ["--instead=\(plan.target)=\($0)"] } ?? [])
            + ConfigurationOptions.arguments(checking)
        switch context.child(freshetd, arguments, .collected) {
        case .ended(_, let output, let errorOutput):
            guard let found = ControlJSON.value(of: output, as: ControlMessage.Diagnostics.self) else {
                throw CommandFailure(
                    .failure, "'\(freshetd) --check' failed: \(DisplayText.harmless(errorOutput))")
            }
            return found.diagnostics
        case .failed(let reason): throw CommandFailure(.failure, "cannot execute '\(freshetd)': \(reason)")
        }
    }

    // MARK: Questions

    /// The answer in lower case; nil at the end of the input.
    private func answer(_ question: String) -> String? {
        context.printError(question)
        return context.answer?()?.lowercased()
    }

    private func isConfirmed(_ question: String) -> Bool {
        switch answer(question) {
        case "", "e", "edit", "y", "yes": true
        default: false
        }
    }

    // MARK: Reload

    private func reload() throws(CommandFailure) {
        do throws(ControlClient.Failure) {
            let reloaded = try ControlClient(path: session.socketPath).reload()
            session.message(Reload.text(reloaded.summary))
        } catch .refused(.configurationRefused(let diagnostics)) {
            for diagnostic in diagnostics.prefix(Reload.errorLimit) {
                context.printError(DiagnosticView.text(diagnostic) + "\n")
            }
            throw CommandFailure(
                .configuration,
                "installed, but the reload was refused because of these errors; repair them, then: freshetctl reload")
        } catch .notRunning {
            throw CommandFailure(.notRunning, "installed, but freshetd does not run; it reads the file when it starts")
        } catch {
            throw session.failure(error)
        }
    }

    /// Turns a failure of the file system into the failure of the verb.
    private func reportingFailure<Result>(
        _ body: () throws(EditFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(EditFailure) {
            return try body()
        } catch {
            throw error.failure
        }
    }
}
