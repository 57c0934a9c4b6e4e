import Glibc
import Testing

@testable import FreshetEventLoop

@Suite("Programs that may be hooks")
struct PathTrustTests {
    typealias Entry = PathTrust.Entry

    /// The files of a machine.
    private static let machine: [String: Entry] = [
        "/": Entry(kind: .directory, owner: 0, mode: 0o755),
        "/usr": Entry(kind: .directory, owner: 0, mode: 0o755),
        "/usr/lib": Entry(kind: .directory, owner: 0, mode: 0o755),
        "/usr/lib/hook": Entry(kind: .file, owner: 0, mode: 0o755),
        "/tmp": Entry(kind: .directory, owner: 0, mode: 0o1777),
    ]

    /// The error message for a path, for the service's user 990.
    private func verdict(
        _ path: String, user: UInt32? = 990, isPersonal: Bool = false, as use: PathTrust.Use = .program,
        _ changes: [String: Entry] = [:]
    ) -> String? {
        let machine = Self.machine.merging(changes) { $1 }
        do throws(PathTrust.ValidationError) {
            try PathTrust(user: user, isPersonal: isPersonal).check(path, as: use) { (path) throws(PathTrust.Errno) in
                guard let entry = machine[path] else { throw PathTrust.Errno(code: ENOENT) }
                return entry
            }
            return nil
        } catch {
            return error.message
        }
    }

    @Test("programs of root in directories of root are trusted")
    func sound() {
        #expect(verdict("/usr/lib/hook") == nil)
        #expect(verdict("/usr/lib/hook", user: 0) == nil)
        #expect(verdict("/usr//./lib/hook") == nil)
        #expect(verdict("/usr/lib/hook", user: nil) == nil)
    }

    @Test(
        "group and others may not write to the file, its directory or a directory above",
        arguments: [
            "/usr/lib/hook", "/usr/lib", "/usr", "/",
        ])
    func writable(path: String) throws {
        var entry = try #require(Self.machine[path])
        for bit: UInt32 in [0o020, 0o002] {
            entry.mode = 0o755 | bit
            #expect(verdict("/usr/lib/hook", [path: entry]) == "others than its owner may write to \(path)")
            // This also holds for a user's own service.
            #expect(verdict("/usr/lib/hook", user: 1_000, isPersonal: true, [path: entry]) != nil)
        }
    }

    @Test(
        "file and directories belong to root, or to the user whose own service it is",
        arguments: ["/usr/lib/hook", "/usr/lib", "/usr"])
    func owned(path: String) throws {
        var entry = try #require(Self.machine[path])
        entry.owner = 990
        #expect(
            verdict("/usr/lib/hook", [path: entry])
                == "\(path) belongs to the service's own user, who could change it")
        #expect(verdict("/usr/lib/hook", user: 990, isPersonal: true, [path: entry]) == nil)
        // They may not belong to another user than root: that user could act as the service.
        let message = "\(path) belongs to the user 990, who could act as the service's user"
        #expect(verdict("/usr/lib/hook", user: 991, [path: entry]) == message)
        #expect(verdict("/usr/lib/hook", user: 991, isPersonal: true, [path: entry]) == message)
        #expect(verdict("/usr/lib/hook", user: nil, [path: entry]) == message)
        #expect(
            verdict("/usr/lib/hook", user: 0, [path: entry]) == "\(path) belongs to the user 990, who could act as root"
        )
    }

    @Test("a directory with the sticky bit may be above, but must not contain the program itself")
    func sticky() {
        let below = [
            "/tmp/own": Entry(kind: .directory, owner: 0, mode: 0o755),
            "/tmp/own/hook": Entry(kind: .file, owner: 0, mode: 0o755),
            "/tmp/hook": Entry(kind: .file, owner: 0, mode: 0o755),
        ]
        #expect(verdict("/tmp/own/hook", below) == nil)
        #expect(verdict("/tmp/hook", below) == "others than its owner may write to /tmp")
    }

    @Test("links are followed, and the directories of link and target are checked")
    func links() {
        let root = Entry(kind: .directory, owner: 0, mode: 0o755)
        var machine = ["/lib": Entry(kind: .link(to: "usr/lib"), owner: 0, mode: 0o777)]
        #expect(verdict("/lib/hook", machine) == nil)
        machine["/etc"] = root
        machine["/etc/hook"] = Entry(kind: .link(to: "../lib/./hook"), owner: 0, mode: 0o777)
        #expect(verdict("/etc/hook", machine) == nil)
        machine["/etc/hook"] = Entry(kind: .link(to: "/srv/hook"), owner: 0, mode: 0o777)
        machine["/srv"] = Entry(kind: .directory, owner: 990, mode: 0o755)
        machine["/srv/hook"] = Entry(kind: .file, owner: 0, mode: 0o755)
        #expect(verdict("/etc/hook", machine) == "/srv belongs to the service's own user, who could change it")
        machine["/srv"] = root
        #expect(verdict("/etc/hook", machine) == nil)
        // A user who can replace the link can select the program.
        machine["/etc"] = Entry(kind: .directory, owner: 0, mode: 0o775)
        #expect(verdict("/etc/hook", machine) == "others than its owner may write to /etc")
        machine["/etc"] = root
        machine["/etc/hook"] = Entry(kind: .link(to: "/etc/hook"), owner: 0, mode: 0o777)
        #expect(verdict("/etc/hook", machine) == "/etc/hook leads in a circle of links")
    }

    @Test("other paths are not programs")
    func others() {
        #expect(verdict("/usr/lib/none") == "/usr/lib/none is not there")
        #expect(verdict("/usr/lib/hook/more") == "/usr/lib/hook is not a directory")
        #expect(verdict("/usr/lib") == "/usr/lib is a directory")
        #expect(verdict("/") == "it is a directory")
        #expect(
            verdict(
                "/dev/null",
                [
                    "/dev": Entry(kind: .directory, owner: 0, mode: 0o755),
                    "/dev/null": Entry(kind: .other, owner: 0, mode: 0o666),
                ])
                == "/dev/null is neither a file nor a directory")
    }

    @Test("configuration may be a directory, a mask or missing, and others may not change it")
    func configuration() {
        let machine = [
            "/etc": Entry(kind: .directory, owner: 0, mode: 0o755),
            "/etc/freshet": Entry(kind: .directory, owner: 0, mode: 0o755),
            "/etc/freshet/mask": Entry(kind: .link(to: "/dev/null"), owner: 0, mode: 0o777),
            "/dev": Entry(kind: .directory, owner: 0, mode: 0o755),
            "/dev/null": Entry(kind: .other, owner: 0, mode: 0o666),
            "/etc/freshet/theirs": Entry(kind: .file, owner: 990, mode: 0o644),
            "/etc/freshet/shared": Entry(kind: .directory, owner: 0, mode: 0o1777),
            "/etc/freshet/shared/own": Entry(kind: .directory, owner: 0, mode: 0o755),
        ]
        func verdict(_ path: String) -> String? { self.verdict(path, user: 0, as: .configuration, machine) }
        for path in ["/", "/etc/freshet", "/etc/freshet/mask", "/etc/freshet/none/none", "/etc/freshet/shared/own"] {
            #expect(verdict(path) == nil)
        }
        #expect(
            verdict("/etc/freshet/theirs") == "/etc/freshet/theirs belongs to the user 990, who could act as root")
        #expect(verdict("/etc/freshet/shared") == "others than its owner may write to /etc/freshet/shared")
    }

    @Test("this machine's own programs are trusted")
    func real() {
        #expect(throws: Never.self) { try PathTrust(user: 990, isPersonal: false).check("/bin/sh") }
    }

    @Test("lookups of one load remember directories and links, but no files")
    func lookups() throws {
        var template = Array("/tmp/freshet-lookups.XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let (file, link) = (directory + "/file", directory + "/link")
        defer {
            unlink(file)
            unlink(link)
            rmdir(directory)
        }
        let descriptor = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        close(descriptor)
        try #require(symlink("file", link) == 0)
        let lookups = PathTrust.Lookups()
        #expect(try lookups.look(directory).mode == 0o700)
        #expect(try lookups.look(file).mode == 0o600)
        #expect(try lookups.look(link).kind == .link(to: "file"))
        try #require(chmod(directory, 0o777) == 0 && chmod(file, 0o666) == 0 && unlink(link) == 0)
        #expect(try lookups.look(directory).mode == 0o700)
        #expect(try lookups.look(file).mode == 0o666)
        #expect(try lookups.look(link).kind == .link(to: "file"))
        #expect(throws: PathTrust.Errno.self) { try lookups.look(directory + "/missing") }
        #expect(try PathTrust.Lookups().look(directory).mode == 0o777)
    }

    @Test("a slash separates names also before a combining mark")
    func combiningMarks() {
        let machine = [
            "/srv": Entry(kind: .directory, owner: 990, mode: 0o755),
            "/srv/\u{301}hook": Entry(kind: .file, owner: 0, mode: 0o755),
            "/usr/lib/link": Entry(kind: .link(to: "/\u{301}else"), owner: 0, mode: 0o777),
            "/\u{301}else": Entry(kind: .file, owner: 990, mode: 0o755),
            "/usr/lib/\u{301}else": Entry(kind: .file, owner: 0, mode: 0o755),
            "/usr/lib/\u{301}a": Entry(kind: .directory, owner: 0, mode: 0o755),
        ]
        #expect(
            verdict("/srv/\u{301}hook", machine) == "/srv belongs to the service's own user, who could change it")
        #expect(
            verdict("/usr/lib/link", machine)
                == "/\u{301}else belongs to the service's own user, who could change it")
        #expect(verdict("/usr/lib/\u{301}a/../hook", machine) == nil)
    }

    /// Checks files of the configuration one after another, and returns the messages and the places that were looked at.
    private func verdicts(
        _ paths: [String], _ machine: [String: Entry], _ lookups: PathTrust.Lookups = PathTrust.Lookups()
    ) -> (messages: [String?], places: [String]) {
        let machine = Self.machine.merging(machine) { $1 }
        var places: [String] = []
        let messages = paths.map { path -> String? in
            do throws(PathTrust.ValidationError) {
                try lookups.check(path, by: PathTrust(user: 0, isPersonal: false)) { (place) throws(PathTrust.Errno) in
                    places.append(place)
                    guard let entry = machine[place] else { throw PathTrust.Errno(code: ENOENT) }
                    return entry
                }
                return nil
            } catch {
                return error.message
            }
        }
        return (messages, places)
    }

    @Test("of many files in one directory, each directory is examined a single time")
    func manyFiles() {
        let names = (0..<100).map { "/usr/lib/\($0).yaml" }
        let files = Dictionary(uniqueKeysWithValues: names.map { ($0, Entry(kind: .file, owner: 0, mode: 0o644)) })
        let (messages, places) = verdicts(names, files)
        #expect(messages == names.map { _ in nil })
        #expect(places == ["/", "/usr", "/usr/lib"] + names)
    }

    @Test("after a trusted file, other files of its directory are still checked")
    func otherFiles() {
        let machine = [
            "/usr/lib/theirs": Entry(kind: .file, owner: 990, mode: 0o644),
            "/usr/lib/open": Entry(kind: .file, owner: 0, mode: 0o666),
            "/usr/lib/link": Entry(kind: .link(to: "/srv/a"), owner: 0, mode: 0o777),
            "/usr/lib/mask": Entry(kind: .link(to: "/dev/null"), owner: 0, mode: 0o777),
            "/dev": Entry(kind: .directory, owner: 0, mode: 0o755),
            "/dev/null": Entry(kind: .other, owner: 0, mode: 0o666),
            "/srv": Entry(kind: .directory, owner: 990, mode: 0o755),
            "/srv/a": Entry(kind: .file, owner: 0, mode: 0o644),
            "/usr/lib/deep": Entry(kind: .directory, owner: 990, mode: 0o755),
            "/usr/lib/deep/a": Entry(kind: .file, owner: 0, mode: 0o644),
        ]
        let paths = [
            "/usr/lib/hook", "/usr/lib/theirs", "/usr/lib/open", "/usr/lib/link", "/usr/lib/mask", "/usr/lib/none",
            "/usr/lib/deep/a", "/usr/lib/../lib/deep/a", "/srv/a", "/usr/lib/hook", "/usr/lib/..", "/usr/lib/hook/",
        ]
        #expect(
            verdicts(paths, machine).messages == [
                nil, "/usr/lib/theirs belongs to the user 990, who could act as root",
                "others than its owner may write to /usr/lib/open",
                "/srv belongs to the user 990, who could act as root", nil, nil,
                "/usr/lib/deep belongs to the user 990, who could act as root",
                "/usr/lib/deep belongs to the user 990, who could act as root",
                "/srv belongs to the user 990, who could act as root", nil, nil, nil,
            ])
    }

    @Test("a directory that was missing when its first file was checked is not trusted")
    func missingDirectory() {
        let lookups = PathTrust.Lookups()
        #expect(verdicts(["/srv/a"], [:], lookups).messages == [nil])
        let machine = [
            "/srv": Entry(kind: .directory, owner: 990, mode: 0o755),
            "/srv/a": Entry(kind: .file, owner: 0, mode: 0o644),
        ]
        #expect(
            verdicts(["/srv/a"], machine, lookups).messages == ["/srv belongs to the user 990, who could act as root"])
    }

    @Test("the directory of a linked file is not trusted because of the file")
    func linkedDirectory() {
        let machine = [
            "/srv": Entry(kind: .directory, owner: 0, mode: 0o755),
            "/srv/link": Entry(kind: .link(to: "/usr/lib/hook"), owner: 0, mode: 0o777),
            "/srv/a": Entry(kind: .file, owner: 0, mode: 0o644),
        ]
        let (messages, places) = verdicts(["/srv/link", "/srv/a"], machine)
        #expect(messages == [nil, nil])
        #expect(places == ["/", "/srv", "/srv/link", "/usr", "/usr/lib", "/usr/lib/hook", "/srv/a"])
    }
}
