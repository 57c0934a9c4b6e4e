import ControlTestSupport
import FreshetControl
import FreshetEventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetCommands

/// `edit` in directories of its own, with an editor and a freshetd of the test; the real ones have Tests/System/580.
@Suite(.serialized, .hangLimit) final class EditTests {
    /// Stands for the system: DIR/etc, DIR/run and DIR/usr.
    private let temporary: TemporaryDirectory
    private var directory: String { temporary.path }

    init() throws {
        temporary = try TemporaryDirectory()
        for name in ["etc", "etc/pipelines", "run", "usr", "usr/pipelines", "tmp"] {
            try temporary.makeDirectory(name)
        }
    }

    private func write(_ name: String, _ text: String, mode: mode_t = 0o644) throws {
        let path = try temporary.write(text, to: name)
        try #require(chmod(path, mode) == 0)
    }

    private func read(_ name: String) -> String? {
        (try? EditedFile.content(of: "\(directory)/\(name)")).map { String(decoding: $0, as: UTF8.self) }
    }

    /// What happens to whoever edits.
    private struct World {
        /// What each turn of the editor makes of the text; nil: it saves nothing. The editor fails if there are no more.
        var turns: [@Sendable (String) -> String?]
        /// What freshetd finds in a text; nil: as it is on disk.
        var faults: @Sendable (String?) -> [ConfigurationDiagnostic] = { _ in [] }
        var answers: [String] = []
        var hasTerminal = true
    }

    private final class Memory: Sendable {
        let turns = Mutex(0)
        let answers = Mutex(0)
        let checks = Mutex([[String]]())
    }

    private func edit(
        _ arguments: [String], _ world: World, service: ScriptedService? = nil
    ) async throws -> (status: CommandStatus, talk: String, memory: Memory) {
        let transcript = Transcript()
        let memory = Memory()
        let directory = directory
        let run = { @Sendable (socket: String) -> CommandStatus in
            var context = transcript.context(
                environment: [
                    "FRESHET_SOCKET": socket, "EDITOR": "/bin/ed -s", "TMPDIR": "\(directory)/tmp",
                ], executable: ["/bin/ed", "/usr/sbin/freshetd"])
            if world.hasTerminal {
                context.talkColumns = 80
                context.answer = {
                    let turn = memory.answers.withLock { count in
                        count += 1
                        return count - 1
                    }
                    return turn < world.answers.count ? world.answers[turn] : nil
                }
            }
            context.child = { path, arguments, streams in
                if path == "/bin/ed" {
                    #expect(streams == .shared && arguments.first == "-s")
                    let turn = memory.turns.withLock { count in
                        count += 1
                        return count - 1
                    }
                    guard turn < world.turns.count, let copy = arguments.last else { return .ended(status: 1) }
                    let text = String(decoding: (try? EditedFile.content(of: copy)) ?? [], as: UTF8.self)
                    if let text = world.turns[turn](text) {
                        let descriptor = open(copy, O_WRONLY | O_TRUNC)
                        _ = Glibc.write(descriptor, text, text.utf8.count)
                        close(descriptor)
                    }
                    return .ended(status: 0)
                }
                #expect(path == "/usr/sbin/freshetd" && streams == .collected)
                memory.checks.withLock { $0.append(arguments) }
                let copy = arguments.first { $0.hasPrefix("--instead=") }?.split(separator: "=").last.map(String.init)
                let text = copy.flatMap { try? EditedFile.content(of: $0) }
                    .map { String(decoding: $0, as: UTF8.self) }
                let found = world.faults(text)
                return .ended(
                    status: found.isEmpty ? 0 : 78,
                    output: ControlJSON.text(of: ControlMessage.Diagnostics(diagnostics: found)) + "\n")
            }
            let directories = ["etc", "run", "usr"].flatMap { ["--config-dir", "\(directory)/\($0)"] }
            return Freshetctl.run(["edit"] + directories + arguments, context)
        }
        let result = Mutex(CommandStatus.success)
        if let service {
            try await withControlServer(service) { path in
                let status = run(path)
                result.withLock { $0 = status }
            }
        } else {
            let status = run("/nonexistent/s")
            result.withLock { $0 = status }
        }
        let talk = transcript.talk.split(separator: directory, omittingEmptySubsequences: false).joined(
            separator: "DIR")
        return (result.withLock { $0 }, talk, memory)
    }

    private func fault(_ file: String = "etc/pipelines/jwks.yaml") -> ConfigurationDiagnostic {
        ConfigurationDiagnostic(
            file: "\(directory)/\(file)", line: 1, column: 1, message: "unknown key 'evry'", excerpt: "evry: 1h",
            caret: 0)
    }

    @Test("what was saved is checked with all the rest, installed with the file's mode, and reloaded")
    func changed() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n", mode: 0o640)
        let service = ScriptedService()
        service.change { $0.reload = .success(ReloadSummary(changed: ["jwks"], unchanged: 2)) }
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# more\n" }]), service: service)
        #expect(result.status == .success)
        #expect(result.talk == "changed: DIR/etc/pipelines/jwks.yaml\nchanged jwks; 2 pipelines unchanged\n")
        #expect(read("etc/pipelines/jwks.yaml") == "every: 1h\n# more\n")
        var status = stat()
        #expect(stat("\(directory)/etc/pipelines/jwks.yaml", &status) == 0 && status.st_mode & 0o7777 == 0o640)
        #expect(EditedFile.names(in: "\(directory)/etc/pipelines") == ["jwks.yaml"])
        // The copy and what the editor may have left beside it are gone.
        #expect(EditedFile.names(in: "\(directory)/tmp") == [])
        let check = try #require(result.memory.checks.withLock { $0.first })
        #expect(check.prefix(2) == ["--check", "--json"])
        #expect(check[2].hasPrefix("--instead=\(directory)/etc/pipelines/jwks.yaml=\(directory)/tmp/freshet-edit-"))
        #expect(check[2].hasSuffix("/jwks.yaml") && check.suffix(1) == ["\(directory)/usr"])
    }

    // MARK: What the mode does not say

    /// The bytes of an access control list (linux/posix_acl_xattr.h): the user 1234 may read and write, the group nothing.
    /// The mask is what `stat` shows as the group's bits.
    private static let list: [UInt8] =
        [2, 0, 0, 0]
        + ([(1, 6, .max), (2, 6, 1_234), (4, 0, .max), (16, 6, .max), (32, 0, .max)] as [(UInt16, UInt16, UInt32)])
        .flatMap { tag, rights, user -> [UInt8] in
            func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
                withUnsafeBytes(of: value.littleEndian, Array.init)
            }
            return bytes(tag) + bytes(rights) + bytes(user)
        }

    private func set(_ attribute: String, _ value: [UInt8], _ name: String) throws {
        let descriptor = open("\(directory)/\(name)", O_RDONLY)
        defer { close(descriptor) }
        try ExtendedAttribute.set(attribute, to: value, of: descriptor)
    }

    private func value(_ attribute: String, _ name: String) throws -> [UInt8]? {
        try ExtendedAttribute.value(attribute, of: "\(directory)/\(name)")
    }

    private func mode(_ name: String) -> mode_t {
        var status = stat()
        return stat("\(directory)/\(name)", &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    /// Not each file system has them.
    private static let hasAttributes: Bool = {
        guard let directory = try? TemporaryDirectory(), let path = try? directory.write("", to: "a") else {
            return false
        }
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        defer { close(descriptor) }
        return (try? ExtendedAttribute.set(ExtendedAttribute.accessList, to: list, of: descriptor)) != nil
            && (try? ExtendedAttribute.set("user.note", to: [1], of: descriptor)) != nil
    }()

    @Test(
        "an access control list stays: who was named still may, and the group gains nothing",
        .enabled(if: hasAttributes))
    func accessList() async throws {
        let name = "etc/pipelines/jwks.yaml"
        try write(name, "every: 1h\n", mode: 0o600)
        try set(ExtendedAttribute.accessList, Self.list, name)
        try set("user.note", Array("mine".utf8), name)
        try #require(mode(name) == 0o660)
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# more\n" }]), service: ScriptedService())
        #expect(result.status == .success && read(name) == "every: 1h\n# more\n", "\(result.talk)")
        #expect(try value(ExtendedAttribute.accessList, name) == Self.list)
        #expect(mode(name) == 0o660)
        #expect(try value("user.note", name) == Array("mine".utf8))
    }

    @Test("a file without an access control list does not get its directory's", .enabled(if: hasAttributes))
    func directoryList() async throws {
        let name = "etc/pipelines/jwks.yaml"
        try write(name, "every: 1h\n", mode: 0o640)
        try set("system.posix_acl_default", Self.list, "etc/pipelines")
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# more\n" }]), service: ScriptedService())
        #expect(result.status == .success && read(name) == "every: 1h\n# more\n", "\(result.talk)")
        #expect(try value(ExtendedAttribute.accessList, name) == nil)
        #expect(mode(name) == 0o640)
    }

    @Test("a copy of a file below lets in whom that lets in, and no others", .enabled(if: hasAttributes))
    func copiedList() async throws {
        try write("usr/pipelines/jwks.yaml", "every: 1h\n", mode: 0o600)
        try set(ExtendedAttribute.accessList, Self.list, "usr/pipelines/jwks.yaml")
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# mine\n" }]), service: ScriptedService())
        #expect(result.status == .success, "\(result.talk)")
        #expect(try value(ExtendedAttribute.accessList, "etc/pipelines/jwks.yaml") == Self.list)
        #expect(mode("etc/pipelines/jwks.yaml") == 0o660)
    }

    @Test(
        "a copy of a file without a list does not get the list of the directory in which it is made",
        .enabled(if: hasAttributes))
    func copiedWithoutList() async throws {
        try write("usr/pipelines/jwks.yaml", "every: 1h\n", mode: 0o640)
        try write("etc/pipelines/other.yaml", "every: 1h\n")
        try set("system.posix_acl_default", Self.list, "etc/pipelines")
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# mine\n" }]), service: ScriptedService())
        #expect(result.status == .success, "\(result.talk)")
        #expect(try value(ExtendedAttribute.accessList, "etc/pipelines/jwks.yaml") == nil)
        #expect(mode("etc/pipelines/jwks.yaml") == 0o640)
    }

    @Test("a text that was not changed changes nothing", arguments: [true, false])
    func unchanged(saves: Bool) async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let result = try await edit(["jwks"], World(turns: [{ saves ? $0 : nil }]))
        #expect(result.status == .success && result.talk == "Nothing was changed.\n")
        #expect(result.memory.checks.withLock { $0.isEmpty })
        #expect(EditedFile.names(in: "\(directory)/tmp") == [])
    }

    @Test("a fault is shown, and the same text edited again until there is none")
    func repaired() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let fault = fault()
        let world = World(
            turns: [{ _ in "evry: 1h\n" }, { $0 == "evry: 1h\n" ? "every: 2h\n" : nil }],
            faults: { $0?.hasPrefix("evry") == true ? [fault] : [] }, answers: [""])
        let result = try await edit(["jwks"], world, service: ScriptedService())
        #expect(result.status == .success && read("etc/pipelines/jwks.yaml") == "every: 2h\n")
        #expect(
            result.talk.hasPrefix(
                """
                DIR/etc/pipelines/jwks.yaml:1:1: error: unknown key 'evry'
                    1 | evry: 1h
                      | ^
                What now? [E]dit again, [g]ive up: changed: DIR/etc/pipelines/jwks.yaml

                """), "\(result.talk)")
    }

    @Test("who gives up finds the text where it is said to be, and the file as it was", arguments: ["g", nil])
    func givenUp(answer: String?) async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let fault = fault()
        let result = try await edit(
            ["jwks"],
            World(turns: [{ _ in "evry: 1h\n" }], faults: { _ in [fault] }, answers: [answer].compactMap { $0 }))
        #expect(result.status == .configuration && read("etc/pipelines/jwks.yaml") == "every: 1h\n")
        let kept = try #require(EditedFile.names(in: "\(directory)/tmp")?.first)
        #expect(read("tmp/\(kept)/jwks.yaml") == "evry: 1h\n")
        #expect(result.talk.hasSuffix("Nothing was installed; your text is in DIR/tmp/\(kept)/jwks.yaml\n"))
    }

    @Test("faults of other files that were there before are told, and keep nothing from being installed")
    func inherited() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let old = fault("etc/pipelines/other.yaml")
        let service = ScriptedService()
        service.change { $0.reload = .failure(.configurationRefused([old])) }
        let result = try await edit(
            ["jwks"], World(turns: [{ _ in "every: 2h\n" }], faults: { _ in [old] }), service: service)
        #expect(result.status == .configuration && read("etc/pipelines/jwks.yaml") == "every: 2h\n")
        #expect(result.talk.contains("other.yaml:1:1: error") && result.talk.contains("the daemon does not read it"))
    }

    @Test("a fault that the edit brings to another file is one of the edit")
    func caused() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let other = fault("etc/pipelines/other.yaml")
        let result = try await edit(
            ["jwks"], World(turns: [{ _ in "every: 2h\n" }], faults: { $0 == nil ? [] : [other] }, answers: ["g"]))
        #expect(result.status == .configuration && read("etc/pipelines/jwks.yaml") == "every: 1h\n")
    }

    @Test("a file that somebody else changed meanwhile is not lost unless that is said", arguments: ["o", "g"])
    func concurrent(answer: String) async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let path = "\(directory)/etc/pipelines/jwks.yaml"
        let world = World(
            turns: [
                { _ in
                    let descriptor = open(path, O_WRONLY | O_TRUNC)
                    _ = Glibc.write(descriptor, "theirs\n", 7)
                    close(descriptor)
                    return "every: 2h\n"
                }
            ], answers: [answer])
        let result = try await edit(["jwks"], world, service: ScriptedService())
        #expect(result.talk.contains("was changed by somebody else meanwhile."))
        #expect(result.status == (answer == "o" ? .success : .failure))
        #expect(read("etc/pipelines/jwks.yaml") == (answer == "o" ? "every: 2h\n" : "theirs\n"))
    }

    @Test("a file below gets a copy above, and stays")
    func copied() async throws {
        try write("usr/pipelines/jwks.yaml", "every: 1h\n", mode: 0o604)
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# mine\n" }]), service: ScriptedService())
        #expect(result.status == .success && result.talk.hasPrefix("made: DIR/etc/pipelines/jwks.yaml\n"))
        #expect(read("usr/pipelines/jwks.yaml") == "every: 1h\n")
        #expect(read("etc/pipelines/jwks.yaml") == "every: 1h\n# mine\n")
    }

    @Test("a link above is followed, and stays one")
    func link() async throws {
        try write("tmp/elsewhere.yaml", "every: 1h\n")
        symlink("\(directory)/tmp/elsewhere.yaml", "\(directory)/etc/pipelines/jwks.yaml")
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# mine\n" }]), service: ScriptedService())
        #expect(result.status == .success && read("tmp/elsewhere.yaml") == "every: 1h\n# mine\n")
        var status = stat()
        #expect(lstat("\(directory)/etc/pipelines/jwks.yaml", &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
    }

    @Test("a drop-in is made beside, with the file in its comments, and not if it says nothing")
    func dropIn() async throws {
        try write("usr/pipelines/jwks.yaml", "every: 1h\n")
        let empty = try await edit(["--drop-in", "jwks"], World(turns: [{ $0 + "# hm\n" }]))
        #expect(empty.status == .failure && empty.talk.contains("there is nothing but comments"))
        let world = World(turns: [
            { text in
                #expect(text.contains("# every: 1h\n"))
                return "every: 2h\n"
            }
        ])
        let result = try await edit(["jwks", "--drop-in"], world, service: ScriptedService())
        #expect(result.talk.hasPrefix("made: DIR/etc/pipelines/jwks.yaml.d/override.yaml\n"))
        #expect(read("etc/pipelines/jwks.yaml.d/override.yaml") == "every: 2h\n")
    }

    @Test("--new begins with a template, and makes nothing if it is left as it is")
    func new() async throws {
        let left = try await edit(["--new", "rates"], World(turns: [{ $0 }]))
        #expect(left.status == .success && left.talk == "Nothing was changed.\n")
        let world = World(turns: [
            { text in
                #expect(text.contains("file: rates.json"))
                return text + "# mine\n"
            }
        ])
        let result = try await edit(["--new", "rates"], world, service: ScriptedService())
        #expect(result.talk.hasPrefix("made: DIR/etc/pipelines/rates.yaml\n"))
        let again = try await edit(["--new", "rates"], World(turns: []))
        #expect(again.status == .failure && again.talk.contains("there is a pipeline 'rates' already"))
    }

    @Test("what cannot be edited says why, and what can")
    func refused() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        symlink("/dev/null", "\(directory)/etc/pipelines/masked.yaml")
        let cases: [([String], String)] = [
            (
                ["jkws"],
                "there is no file of a pipeline 'jkws'; did you mean 'jwks'?\nTo make one: freshetctl edit --new jkws"
            ),
            (["../x"], "'../x' is not a pipeline's name"), (["masked"], "'masked' is masked"),
            (["--new", "n", "--from", "no"], "there is no example 'no'"),
        ]
        for (arguments, message) in cases {
            let result = try await edit(arguments, World(turns: []))
            #expect(result.status == .failure && result.talk.contains(message), "\(result.talk)")
        }
        let failed = try await edit(["jwks"], World(turns: []))
        #expect(failed.status == .failure && failed.talk.contains("the editor '/bin/ed' ended with status 1"))
    }

    @Test("a link that masks a drop-in, and one to nothing, stay as they are")
    func links() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        mkdir("\(directory)/etc/pipelines/jwks.yaml.d", 0o755)
        let dropIn = "\(directory)/etc/pipelines/jwks.yaml.d/override.yaml"
        symlink("/dev/null", dropIn)
        let masked = try await edit(["jwks", "--drop-in"], World(turns: [{ _ in "every: 2h\n" }]))
        #expect(masked.status == .failure && masked.talk.contains("is a link to /dev/null; remove that first"))
        #expect(EditedFile.isMask(dropIn) && EditedFile.isMask("/dev/null"))
        unlink(dropIn)
        symlink("\(directory)/nowhere", dropIn)
        symlink("../nowhere", "\(directory)/etc/pipelines/away.yaml")
        try write("usr/pipelines/away.yaml", "every: 1h\n")
        for arguments in [["jwks", "--drop-in"], ["away"]] {
            let result = try await edit(arguments, World(turns: [{ _ in "every: 2h\n" }]))
            #expect(result.status == .failure && result.talk.contains("is a link to nothing"), "\(result.talk)")
        }
        let new = try await edit(["--new", "away"], World(turns: [{ _ in "every: 2h\n" }]))
        #expect(new.status == .failure && new.talk.contains("there is a pipeline 'away' already"))
        #expect(!EditedFile.isNamed("\(directory)/nowhere") && !EditedFile.isNamed("\(directory)/etc/nowhere"))
        #expect(throws: EditFailure.self) { try EditedFile("/dev/null") }
    }

    @Test("notes that are nothing but comments are not installed, and not lost")
    func notes() async throws {
        let result = try await edit(["--new", "rates"], World(turns: [{ _ in "# where is it?\n" }]))
        #expect(result.status == .failure && result.talk.contains("there is nothing but comments"))
        #expect(result.talk.contains("your text is in DIR/tmp/freshet-edit-"))
        #expect(read("etc/pipelines/rates.yaml") == nil)
        let empty = try await edit(["--new", "rates"], World(turns: [{ _ in " \n\n" }]))
        #expect(empty.status == .success && empty.talk == "Nothing was changed.\n")
    }

    @Test("without a terminal nothing is edited")
    func noTerminal() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let result = try await edit(["jwks"], World(turns: [], hasTerminal: false))
        #expect(result.status == .failure && result.talk.contains("there is no terminal to edit at"))
    }

    @Test("without a daemon the file is installed, and the status says that nobody has read it")
    func noDaemon() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let result = try await edit(["jwks"], World(turns: [{ _ in "every: 2h\n" }]))
        #expect(result.status == .notRunning && read("etc/pipelines/jwks.yaml") == "every: 2h\n")
        #expect(result.talk.contains("freshetd does not run, and reads it when it starts"))
    }

    @Test("the editor is the environment's, with its arguments, or one that there is")
    func editors() throws {
        func editor(_ environment: [String: String], _ programs: Set<String>) throws(CommandFailure) -> Editor {
            try Editor.find(
                Transcript().context(environment: environment.merging(["PATH": "/bin"]) { $1 }, executable: programs))
        }
        let all: Set = ["/bin/vi", "/bin/nano", "/bin/code", "/bin/emacs"]
        #expect(
            try editor(["SYSTEMD_EDITOR": "code -w", "EDITOR": "vi"], all)
                == Editor(path: "/bin/code", arguments: ["-w"]))
        #expect(try editor(["EDITOR": "", "VISUAL": "emacs"], all).path == "/bin/emacs")
        #expect(try editor([:], all).path == "/bin/nano")
        #expect(try editor([:], ["/bin/vi"]).path == "/bin/vi")
        #expect(throws: CommandFailure.self) { try editor([:], []) }
        #expect(throws: CommandFailure.self) { try editor(["EDITOR": "code"], ["/bin/vi"]) }
    }

    @Test("a file is called as freshetd calls it, however its directory was written")
    func paths() {
        #expect(EditPlan.path("/etc//", "a") == "/etc/a" && EditPlan.path("./etc/", "a") == "./etc/a")
        #expect(EditPlan.path(".", "a") == "a" && EditPlan.path("/", "a") == "/a")
    }

    @Test("an example says what it is for, and is offered by its name")
    func examples() throws {
        let uses = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined() + "/etc/examples/uses"
        let examples = EditPlan.examples(in: [uses])
        let path = try #require(examples["jwks-discovery"])
        #expect(
            EditPlan.summary(ofExample: path)
                == "The keys of an OpenID provider, found by discovery: the first document says where the second one is."
        )
    }
}
