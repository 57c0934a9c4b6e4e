import FreshetControl
import FreshetRender

/// An edit, from the copy that is opened to the reload.
struct EditSession {
    let plan: EditPlan
    let editor: Editor
    /// The directories that are checked; none: the usual ones.
    let checking: [String]
    let session: Session

    private var context: CommandContext { session.context }
    private var target: String { DisplayText.harmless(plan.target) }

    func run() throws(CommandFailure) {
        let file: EditedFile
        let copy: String
        do throws(EditFailure) {
            // As it was when its text was taken: what comes after that is somebody else's.
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
            guard let text = try edited(copy, file) else { return session.say("Nothing was changed.") }
            try asking { () throws(EditFailure) in try file.replace(with: text, like: plan.source) }
        } catch {
            isKept = true
            throw CommandFailure(error.status, error.message + (error.message.isEmpty ? "" : "\n") + kept(copy))
        }
        session.say("\(plan.isNew ? "made" : "changed"): \(target)")
        try reload()
    }

    private func kept(_ copy: String) -> String {
        "Nothing was installed; your text is in \(DisplayText.harmless(copy))"
    }

    // MARK: Editing and checking

    /// The text that is to be installed; nil: nothing is.
    private func edited(_ copy: String, _ file: EditedFile) throws(CommandFailure) -> [UInt8]? {
        while true {
            let before = FileStamp(copy)
            try open(copy)
            guard let text = try asking({ () throws(EditFailure) in try EditedFile.content(of: copy) }) else {
                throw CommandFailure(.failure, "the editor has removed the text")
            }
            // An example may be meant as it is; then it was saved.
            if text == plan.text, !(plan.isWhole && FileStamp(copy) != before) { return nil }
            if plan.isNew, EditPlan.isEmpty(text) {
                guard text.contains(where: { !EditPlan.isSpace($0) }) else { return nil }
                throw CommandFailure(.failure, "there is nothing but comments")
            }
            guard try isSound(copy) else {
                guard goesOn("What now? [E]dit again, [g]ive up: ") else { throw CommandFailure(.configuration) }
                continue
            }
            guard try asking({ () throws(EditFailure) in try file.isOther() }) else { return text }
            session.context.talk("\(target) was changed by somebody else meanwhile.\n")
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

    /// Has all of the configuration checked with the text in its place, and tells what is wrong. Faults of other files
    /// that were there before are told, and do not keep the text from being installed.
    private func isSound(_ copy: String) throws(CommandFailure) -> Bool {
        let diagnostics = try check(instead: copy)
        let faults = diagnostics.filter { $0.severity == .fault }
        var inherited: Set<ConfigurationDiagnostic> = []
        if faults.contains(where: { $0.file != plan.target }) { inherited = Set(try check(instead: nil)) }
        for diagnostic in diagnostics where diagnostic.severity != .fault ? diagnostic.file == plan.target : true {
            context.talk(DiagnosticView.text(diagnostic) + "\n")
        }
        return faults.allSatisfy { $0.file != plan.target && inherited.contains($0) }
    }

    private func check(instead copy: String?) throws(CommandFailure) -> [ConfigurationDiagnostic] {
        let candidates = Check.candidates(ownPath: context.ownPath)
        guard let freshetd = candidates.first(where: context.isExecutable) else {
            throw CommandFailure(
                .failure, "freshetd, which checks, is not installed: looked for \(candidates.joined(separator: ", "))")
        }
        let arguments =
            ["--check", "--json"] + (copy.map { ["--instead=\(plan.target)=\($0)"] } ?? [])
            + ConfigurationOptions.arguments(checking)
        switch context.child(freshetd, arguments, .collected) {
        case .ended(_, let output, let talk):
            guard let found = ControlJSON.value(of: output, as: ControlMessage.Diagnostics.self) else {
                throw CommandFailure(.failure, "'\(freshetd) --check' does not work: \(DisplayText.harmless(talk))")
            }
            return found.diagnostics
        case .failed(let reason): throw CommandFailure(.failure, "cannot execute '\(freshetd)': \(reason)")
        }
    }

    // MARK: Questions

    /// What was answered, in lower case; nil: nothing more can be.
    private func answer(_ question: String) -> String? {
        context.talk(question)
        return context.answer?()?.lowercased()
    }

    private func goesOn(_ question: String) -> Bool {
        switch answer(question) {
        case "", "e", "edit", "y", "yes": true
        default: false
        }
    }

    // MARK: Afterwards

    private func reload() throws(CommandFailure) {
        do throws(ControlClient.Failure) {
            let reloaded = try ControlClient(path: session.socketPath).reload()
            session.say(Reload.text(reloaded.summary))
        } catch .refused(.configurationRefused(let diagnostics)) {
            for diagnostic in diagnostics.prefix(Reload.faultLimit) {
                context.talk(DiagnosticView.text(diagnostic) + "\n")
            }
            throw CommandFailure(
                .configuration,
                "the daemon does not read it: the configuration has faults; repair them, then: freshetctl reload")
        } catch .notRunning {
            throw CommandFailure(.notRunning, "freshetd does not run, and reads it when it starts")
        } catch {
            throw session.failure(error)
        }
    }

    private func asking<Answer>(_ question: () throws(EditFailure) -> Answer) throws(CommandFailure) -> Answer {
        do throws(EditFailure) {
            return try question()
        } catch {
            throw error.failure
        }
    }
}
