import ControlTestSupport
import FreshetControl
import FreshetEventLoop
import FreshetRender
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

    /// The editor, freshetd and the user of a test.
    private struct World {
        /// The text that each call of the editor saves; nil if it saves nothing. Further calls of the editor fail.
        var turns: [@Sendable (String) -> String?]
        /// The errors that freshetd finds in a text; nil for the text on disk.
        var errors: @Sendable (String?) -> [ConfigurationDiagnostic] = { _ in [] }
        var answers: [String] = []
        var hasTerminal = true
        var user: UInt32 = 1_000
    }

    private final class Memory: Sendable {
        let turns = Mutex(0)
        let answers = Mutex(0)
        let checks = Mutex([[String]]())
    }

    private func edit(
        _ arguments: [String], _ world: World, below directories: [String] = ["etc", "run", "usr"],
        service: ScriptedService? = nil
    ) async throws -> (status: CommandStatus, printError: String, memory: Memory) {
        let transcript = Transcript()
        let memory = Memory()
        let directory = directory
        let run = { @Sendable (socket: String) -> CommandStatus in
            var context = transcript.context(
                environment: [
                    "FRESHET_SOCKET": socket, "EDITOR": "/bin/ed -s", "TMPDIR": "\(directory)/tmp",
                ], user: world.user, executable: ["/bin/ed", "/usr/sbin/freshetd"])
            if world.hasTerminal {
                context.errorColumns = 80
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
                let found = world.errors(text)
                return .ended(
                    status: found.isEmpty ? 0 : 78,
                    output: ControlJSON.text(of: ControlMessage.Diagnostics(diagnostics: found)) + "\n")
            }
            let directories = directories.flatMap { ["--config-dir", "\(directory)/\($0)"] }
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
        let printError = transcript.printError.split(separator: directory, omittingEmptySubsequences: false).joined(
            separator: "DIR")
        return (result.withLock { $0 }, printError, memory)
    }

    private func error(_ file: String = "etc/pipelines/jwks.yaml") -> ConfigurationDiagnostic {
        ConfigurationDiagnostic(
            file: "\(directory)/\(file)", line: 1, column: 1, message: "unknown key 'evry'", excerpt: "evry: 1h",
            caret: 0)
    }

    @Test("a saved file is checked with all others, installed with its mode, and reloaded")
    func changed() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n", mode: 0o640)
        let service = ScriptedService()
        service.change { $0.reload = .success(ReloadSummary(changed: ["jwks"], unchanged: 2)) }
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# more\n" }]), service: service)
        #expect(result.status == .success)
        #expect(result.printError == "changed: DIR/etc/pipelines/jwks.yaml\nchanged jwks; 2 pipelines unchanged\n")
        #expect(read("etc/pipelines/jwks.yaml") == "every: 1h\n# more\n")
        var status = stat()
        #expect(stat("\(directory)/etc/pipelines/jwks.yaml", &status) == 0 && status.st_mode & 0o7777 == 0o640)
        #expect(EditedFile.names(in: "\(directory)/etc/pipelines") == ["jwks.yaml"])
        // The copy and its directory are removed.
        #expect(EditedFile.names(in: "\(directory)/tmp") == [])
        let check = try #require(result.memory.checks.withLock { $0.first })
        #expect(check.prefix(2) == ["--check", "--json"])
        #expect(check[2].hasPrefix("--instead=\(directory)/etc/pipelines/jwks.yaml=\(directory)/tmp/freshet-edit-"))
        #expect(check[2].hasSuffix("/jwks.yaml") && check.suffix(1) == ["\(directory)/usr"])
    }

    // MARK: Access control lists and attributes

    /// The bytes of an access control list (linux/posix_acl_xattr.h): the user 1234 may read and write, the group
    /// nothing. The mask is what `stat` shows as the group's bits.
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

    /// Whether the file system supports them.
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
        "an access control list stays, and the group gains no rights",
        .enabled(if: hasAttributes))
    func accessList() async throws {
        let name = "etc/pipelines/jwks.yaml"
        try write(name, "every: 1h\n", mode: 0o600)
        try set(ExtendedAttribute.accessList, Self.list, name)
        try set("user.note", Array("mine".utf8), name)
        try #require(mode(name) == 0o660)
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# more\n" }]), service: ScriptedService())
        #expect(result.status == .success && read(name) == "every: 1h\n# more\n", "\(result.printError)")
        #expect(try value(ExtendedAttribute.accessList, name) == Self.list)
        #expect(mode(name) == 0o660)
        #expect(try value("user.note", name) == Array("mine".utf8))
    }

    @Test("a file without an access control list does not inherit that of its directory", .enabled(if: hasAttributes))
    func directoryList() async throws {
        let name = "etc/pipelines/jwks.yaml"
        try write(name, "every: 1h\n", mode: 0o640)
        try set("system.posix_acl_default", Self.list, "etc/pipelines")
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# more\n" }]), service: ScriptedService())
        #expect(result.status == .success && read(name) == "every: 1h\n# more\n", "\(result.printError)")
        #expect(try value(ExtendedAttribute.accessList, name) == nil)
        #expect(mode(name) == 0o640)
    }

    @Test("a copy of a file of lower precedence has the same access control list", .enabled(if: hasAttributes))
    func copiedList() async throws {
        try write("usr/pipelines/jwks.yaml", "every: 1h\n", mode: 0o600)
        try set(ExtendedAttribute.accessList, Self.list, "usr/pipelines/jwks.yaml")
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# mine\n" }]), service: ScriptedService())
        #expect(result.status == .success, "\(result.printError)")
        #expect(try value(ExtendedAttribute.accessList, "etc/pipelines/jwks.yaml") == Self.list)
        #expect(mode("etc/pipelines/jwks.yaml") == 0o660)
    }

    @Test(
        "a copy of a file without a list does not inherit that of its directory",
        .enabled(if: hasAttributes))
    func copiedWithoutList() async throws {
        try write("usr/pipelines/jwks.yaml", "every: 1h\n", mode: 0o640)
        try write("etc/pipelines/other.yaml", "every: 1h\n")
        try set("system.posix_acl_default", Self.list, "etc/pipelines")
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# mine\n" }]), service: ScriptedService())
        #expect(result.status == .success, "\(result.printError)")
        #expect(try value(ExtendedAttribute.accessList, "etc/pipelines/jwks.yaml") == nil)
        #expect(mode("etc/pipelines/jwks.yaml") == 0o640)
    }

    @Test("an unchanged text is not installed", arguments: [true, false])
    func unchanged(saves: Bool) async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let result = try await edit(["jwks"], World(turns: [{ saves ? $0 : nil }]))
        #expect(result.status == .success && result.printError == "Nothing was changed.\n")
        #expect(result.memory.checks.withLock { $0.isEmpty })
        #expect(EditedFile.names(in: "\(directory)/tmp") == [])
    }

    @Test("an error is shown, and the same text is edited again until it is valid")
    func repaired() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let error = error()
        let world = World(
            turns: [{ _ in "evry: 1h\n" }, { $0 == "evry: 1h\n" ? "every: 2h\n" : nil }],
            errors: { $0?.hasPrefix("evry") == true ? [error] : [] }, answers: [""])
        let result = try await edit(["jwks"], world, service: ScriptedService())
        #expect(result.status == .success && read("etc/pipelines/jwks.yaml") == "every: 2h\n")
        #expect(
            result.printError.hasPrefix(
                """
                DIR/etc/pipelines/jwks.yaml:1:1: error: unknown key 'evry'
                    1 | evry: 1h
                      | ^
                What now? [E]dit again, [g]ive up: changed: DIR/etc/pipelines/jwks.yaml

                """), "\(result.printError)")
    }

    @Test("after giving up, the text is at the printed path, and the file is unchanged", arguments: ["g", nil])
    func givenUp(answer: String?) async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let error = error()
        let result = try await edit(
            ["jwks"],
            World(turns: [{ _ in "evry: 1h\n" }], errors: { _ in [error] }, answers: [answer].compactMap { $0 }))
        #expect(result.status == .configuration && read("etc/pipelines/jwks.yaml") == "every: 1h\n")
        let kept = try #require(EditedFile.names(in: "\(directory)/tmp")?.first)
        #expect(read("tmp/\(kept)/jwks.yaml") == "evry: 1h\n")
        #expect(result.printError.hasSuffix("Nothing was installed; your text is in DIR/tmp/\(kept)/jwks.yaml\n"))
    }

    @Test("earlier errors of other files are printed, and do not prevent the installation")
    func inherited() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let old = error("etc/pipelines/other.yaml")
        let service = ScriptedService()
        service.change { $0.reload = .failure(.configurationRefused([old])) }
        let result = try await edit(
            ["jwks"], World(turns: [{ _ in "every: 2h\n" }], errors: { _ in [old] }), service: service)
        #expect(result.status == .configuration && read("etc/pipelines/jwks.yaml") == "every: 2h\n")
        #expect(
            result.printError.contains("other.yaml:1:1: error")
                && result.printError.contains("installed, but the reload was refused"))
    }

    @Test("an error that the edit causes in another file prevents the installation")
    func caused() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let other = error("etc/pipelines/other.yaml")
        let result = try await edit(
            ["jwks"], World(turns: [{ _ in "every: 2h\n" }], errors: { $0 == nil ? [] : [other] }, answers: ["g"]))
        #expect(result.status == .configuration && read("etc/pipelines/jwks.yaml") == "every: 1h\n")
    }

    @Test("a file that somebody else changed is overwritten only after a confirmation", arguments: ["o", "g"])
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
        #expect(result.printError.contains("was changed by somebody else meanwhile."))
        #expect(result.status == (answer == "o" ? .success : .failure))
        #expect(read("etc/pipelines/jwks.yaml") == (answer == "o" ? "every: 2h\n" : "theirs\n"))
    }

    @Test("a file of lower precedence is copied to the first directory, and stays")
    func copied() async throws {
        try write("usr/pipelines/jwks.yaml", "every: 1h\n", mode: 0o604)
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# mine\n" }]), service: ScriptedService())
        #expect(result.status == .success && result.printError.hasPrefix("made: DIR/etc/pipelines/jwks.yaml\n"))
        #expect(read("usr/pipelines/jwks.yaml") == "every: 1h\n")
        #expect(read("etc/pipelines/jwks.yaml") == "every: 1h\n# mine\n")
    }

    @Test("a link in the first directory is followed, and stays a link")
    func link() async throws {
        try write("tmp/elsewhere.yaml", "every: 1h\n")
        symlink("\(directory)/tmp/elsewhere.yaml", "\(directory)/etc/pipelines/jwks.yaml")
        let result = try await edit(["jwks"], World(turns: [{ $0 + "# mine\n" }]), service: ScriptedService())
        #expect(result.status == .success && read("tmp/elsewhere.yaml") == "every: 1h\n# mine\n")
        var status = stat()
        #expect(lstat("\(directory)/etc/pipelines/jwks.yaml", &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
    }

    @Test("a drop-in has the file in its comments, and is not installed if it has only comments")
    func dropIn() async throws {
        try write("usr/pipelines/jwks.yaml", "every: 1h\n")
        let empty = try await edit(["--drop-in", "jwks"], World(turns: [{ $0 + "# hm\n" }]))
        #expect(empty.status == .failure && empty.printError.contains("the file has only comments"))
        let world = World(turns: [
            { text in
                #expect(text.contains("# every: 1h\n"))
                return "every: 2h\n"
            }
        ])
        let result = try await edit(["jwks", "--drop-in"], world, service: ScriptedService())
        #expect(result.printError.hasPrefix("made: DIR/etc/pipelines/jwks.yaml.d/override.yaml\n"))
        #expect(read("etc/pipelines/jwks.yaml.d/override.yaml") == "every: 2h\n")
    }

    @Test("--new starts from a template, and installs nothing if it is unchanged")
    func new() async throws {
        let left = try await edit(["--new", "rates"], World(turns: [{ $0 }]))
        #expect(left.status == .success && left.printError == "Nothing was changed.\n")
        let world = World(turns: [
            { text in
                #expect(text.contains("file: rates.json"))
                return text + "# mine\n"
            }
        ])
        let result = try await edit(["--new", "rates"], world, service: ScriptedService())
        #expect(result.printError.hasPrefix("made: DIR/etc/pipelines/rates.yaml\n"))
        let again = try await edit(["--new", "rates"], World(turns: []))
        #expect(again.status == .failure && again.printError.contains("there is a pipeline 'rates' already"))
    }

    // MARK: Hooks of several pipelines

    @Test("--hook edits a hook's file in the same way")
    func hook() async throws {
        try temporary.makeDirectory("usr/hooks")
        try write("usr/hooks/shop.yaml", "on-change-of: [a]\nexec: [/x]\n")
        try write("etc/pipelines/shop.yaml", "every: 1h\n")
        let wrong = error("etc/hooks/shop.yaml")
        let world = World(
            turns: [{ $0 + "quite: 1s\n" }, { $0.replacing("quite", with: "quiet") }],
            errors: { $0?.contains("quite") == true ? [wrong] : [] }, answers: ["e"])
        let service = ScriptedService()
        service.change { $0.reload = .success(ReloadSummary(changed: [], unchanged: 1, changedHooks: ["shop"])) }
        let result = try await edit(["--hook", "shop"], world, service: service)
        #expect(result.status == .success)
        #expect(result.printError.hasPrefix("DIR/etc/hooks/shop.yaml:1:1: error: "))
        #expect(
            result.printError.hasSuffix(
                "made: DIR/etc/hooks/shop.yaml\nhooks changed: shop; 1 pipeline unchanged\n"), "\(result.printError)")
        #expect(read("etc/hooks/shop.yaml") == "on-change-of: [a]\nexec: [/x]\nquiet: 1s\n")
        #expect(read("usr/hooks/shop.yaml") == "on-change-of: [a]\nexec: [/x]\n")
        #expect(read("etc/pipelines/shop.yaml") == "every: 1h\n")
        let dropIn = try await edit(
            ["--hook", "--drop-in", "shop"],
            World(turns: [{ $0.contains("# on-change-of: [a]\n") ? "quiet: 3s\n" : nil }]), service: service)
        #expect(dropIn.status == .success && read("etc/hooks/shop.yaml.d/override.yaml") == "quiet: 3s\n")
    }

    @Test("--hook --new starts from a template, and makes the directory of hooks")
    func newHook() async throws {
        let world = World(turns: [
            { text in
                #expect(text.contains("on-change-of: [first, second]\nexec: [/usr/local/lib/freshet/shop]\n"))
                return text + "# mine\n"
            }
        ])
        let result = try await edit(["--hook", "--new", "shop"], world, service: ScriptedService())
        #expect(result.printError.hasPrefix("made: DIR/etc/hooks/shop.yaml\n"), "\(result.printError)")
        let again = try await edit(["--new", "--hook", "shop"], World(turns: []))
        #expect(again.status == .failure && again.printError.contains("there is a hook 'shop' already"))
        let missing = try await edit(["--hook", "shp"], World(turns: []))
        #expect(
            missing.printError.contains(
                "there is no file of a hook 'shp'; did you mean 'shop'?\nTo make one: freshetctl edit --hook --new shp")
        )
        let invalid = try await edit(["--hook", "../x"], World(turns: []))
        #expect(invalid.printError.contains("'../x' is not a hook's name"))
    }

    @Test("a file that cannot be edited is an error with a reason")
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
            #expect(result.status == .failure && result.printError.contains(message), "\(result.printError)")
        }
        let failed = try await edit(["jwks"], World(turns: []))
        #expect(failed.status == .failure && failed.printError.contains("the editor '/bin/ed' ended with status 1"))
    }

    @Test("a masked drop-in and a dangling link are not edited")
    func links() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        mkdir("\(directory)/etc/pipelines/jwks.yaml.d", 0o755)
        let dropIn = "\(directory)/etc/pipelines/jwks.yaml.d/override.yaml"
        symlink("/dev/null", dropIn)
        let masked = try await edit(["jwks", "--drop-in"], World(turns: [{ _ in "every: 2h\n" }]))
        #expect(masked.status == .failure && masked.printError.contains("is a link to /dev/null; remove that first"))
        #expect(EditedFile.isMask(dropIn) && EditedFile.isMask("/dev/null"))
        unlink(dropIn)
        symlink("\(directory)/nowhere", dropIn)
        symlink("../nowhere", "\(directory)/etc/pipelines/away.yaml")
        try write("usr/pipelines/away.yaml", "every: 1h\n")
        for arguments in [["jwks", "--drop-in"], ["away"]] {
            let result = try await edit(arguments, World(turns: [{ _ in "every: 2h\n" }]))
            #expect(
                result.status == .failure && result.printError.contains("is a link to nothing"), "\(result.printError)")
        }
        let new = try await edit(["--new", "away"], World(turns: [{ _ in "every: 2h\n" }]))
        #expect(new.status == .failure && new.printError.contains("there is a pipeline 'away' already"))
        #expect(
            !EditedFile.existsAnything(at: "\(directory)/nowhere")
                && !EditedFile.existsAnything(at: "\(directory)/etc/nowhere"))
        #expect(throws: EditFailure.self) { try EditedFile("/dev/null") }
    }

    @Test("root does not edit below a directory, or through a link, that another user can change")
    func untrusted() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        try write("tmp/secret", "every: 1h\n", mode: 0o600)
        // Writable for every user, also if this test is run by root.
        try temporary.makeDirectory("open")
        try #require(chmod("\(directory)/open", 0o777) == 0)
        try #require(symlink("\(directory)/tmp/secret", "\(directory)/open/link") == 0)
        try #require(symlink("\(directory)/open/link", "\(directory)/etc/pipelines/linked.yaml") == 0)
        try #require(chmod("\(directory)/usr/pipelines", 0o777) == 0)
        try write("usr/pipelines/lower.yaml", "every: 1h\n")
        let cases: [(arguments: [String], directories: [String])] = [
            (["linked"], ["etc"]), (["lower"], ["etc", "usr"]), (["--new", "rates"], ["open"]),
            (["jwks"], ["open", "etc"]), (["--drop-in", "jwks"], ["open", "etc"]),
        ]
        for (arguments, directories) in cases {
            let result = try await edit(
                arguments, World(turns: [{ _ in "every: 2h\n" }], user: 0), below: directories)
            #expect(result.status == .notPermitted, "\(arguments): \(result.printError)")
            #expect(result.printError.contains("root does not edit '") && result.printError.contains("; remedy: ch"))
            #expect(result.memory.turns.withLock { $0 } == 0, "the editor opened")
        }
        #expect(read("tmp/secret") == "every: 1h\n" && read("etc/pipelines/lower.yaml") == nil)
    }

    /// The directories of the test belong to the user who runs it, and root trusts only its own.
    @Test(
        "root does not install a file in a directory that another user made while the editor was open",
        .enabled(if: geteuid() == 0))
    func untrustedMeanwhile() async throws {
        let missing = "\(directory)/new"
        let world = World(
            turns: [
                { _ in
                    for path in [missing, missing + "/pipelines"] { #expect(mkdir(path, 0o755) == 0) }
                    #expect(chmod(missing + "/pipelines", 0o777) == 0)
                    return "every: 2h\n"
                }
            ], user: 0)
        let result = try await edit(["--new", "rates"], world, below: ["new"])
        #expect(result.status == .notPermitted, "\(result.printError)")
        #expect(result.printError.contains("root does not edit '"))
        #expect(result.memory.turns.withLock { $0 } == 1)
        #expect(EditedFile.names(in: missing + "/pipelines") == [])
    }

    @Test("a text with only comments is kept, but not installed")
    func notes() async throws {
        let result = try await edit(["--new", "rates"], World(turns: [{ _ in "# where is it?\n" }]))
        #expect(result.status == .failure && result.printError.contains("the file has only comments"))
        #expect(result.printError.contains("your text is in DIR/tmp/freshet-edit-"))
        #expect(read("etc/pipelines/rates.yaml") == nil)
        let empty = try await edit(["--new", "rates"], World(turns: [{ _ in " \n\n" }]))
        #expect(empty.status == .success && empty.printError == "Nothing was changed.\n")
    }

    @Test("edit needs a terminal")
    func noTerminal() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let result = try await edit(["jwks"], World(turns: [], hasTerminal: false))
        #expect(result.status == .failure && result.printError.contains("edit needs a terminal"))
    }

    @Test("without a daemon the file is installed, and the status is 69")
    func noDaemon() async throws {
        try write("etc/pipelines/jwks.yaml", "every: 1h\n")
        let result = try await edit(["jwks"], World(turns: [{ _ in "every: 2h\n" }]))
        #expect(result.status == .notRunning && read("etc/pipelines/jwks.yaml") == "every: 2h\n")
        #expect(result.printError.contains("installed, but freshetd does not run; it reads the file when it starts"))
    }

    @Test("the editor is that of the environment, with its arguments, or an installed one")
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

    @Test("a path is the same as in freshetd, for any spelling of its directory")
    func paths() {
        #expect(EditPlan.path("/etc//", "a") == "/etc/a" && EditPlan.path("./etc/", "a") == "./etc/a")
        #expect(EditPlan.path(".", "a") == "a" && EditPlan.path("/", "a") == "/a")
    }

    @Test("the list of examples wraps texts on a narrow terminal, and cuts none")
    func wrappedExamples() {
        let examples = [("kiosk", "The content of a kiosk, as one file."), ("flags", "Flags.")]
        #expect(
            Edit.rows(examples, columns: 30).map { $0.map(\.text) }
                == [["kiosk", "The content of a"], ["", "kiosk, as one file."], ["flags", "Flags."]])
        #expect(Edit.rows(examples, columns: nil).map { $0[1].text } == examples.map(\.1))
    }

    @Test("examples have a name and a summary")
    func examples() throws {
        let uses = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined() + "/etc/examples/uses"
        let examples = EditPlan.examples(in: [uses])
        let path = try #require(examples["jwks-discovery"])
        #expect(
            EditPlan.summary(ofExample: path)
                == "The keys of an OpenID provider, found by discovery: the first document contains the URL of the keys."
        )
    }
}
