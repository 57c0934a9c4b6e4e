import FreshetEventLoop
import Glibc

/// The rules of polkit(8) on this machine, as texts. A rule is a program in JavaScript, which is not executed here: so
/// this type says that a right is missing only if no rule can give it.
struct PolkitRules: Hashable, Sendable {
    /// Whether the service may reload a unit.
    enum Permission: Hashable, Sendable {
        /// A rule that may permit it names the unit.
        case named
        /// No rule permits it.
        case missing
        /// The reason, as a clause such as `there is no polkit on this machine`.
        case unknown(String)
    }

    /// The directories with rules, in the order of polkit(8).
    static let directories = [
        "/etc/polkit-1/rules.d", "/run/polkit-1/rules.d", "/usr/local/share/polkit-1/rules.d",
        "/usr/share/polkit-1/rules.d",
    ]
    /// The directories of the older format, whose files are not rules but also give rights (pkla(8)).
    static let olderDirectories = ["/etc/polkit-1/localauthority", "/var/lib/polkit-1/localauthority"]

    /// The most files that are read. A distribution has about ten.
    private static let fileLimit = 1_000
    /// The most bytes of one file that are read.
    private static let sizeLimit = 256 << 10

    private(set) var texts: [String] = []
    /// Why not all rules are known; nil: all are.
    private(set) var obstacle: String?

    init(texts: [String], obstacle: String? = nil) {
        self.texts = texts
        self.obstacle = obstacle
    }

    /// Reads the rules with the rights of this process. Only root and polkit may read them on many systems. Blocks.
    init(
        reading directories: [String] = PolkitRules.directories, older: [String] = PolkitRules.olderDirectories
    ) {
        var hasDirectory = false
        for directory in directories {
            guard let names = Self.names(in: directory) else {
                if errno == ENOENT { continue }
                obstacle = "only root may read \(directory)"
                return
            }
            hasDirectory = true
            for name in names.sorted() where name.hasSuffix(".rules") {
                guard texts.count < Self.fileLimit, let text = Self.text(of: "\(directory)/\(name)") else {
                    obstacle = "\(directory)/\(name) cannot be read"
                    return
                }
                texts.append(text)
            }
        }
        if !hasDirectory { obstacle = "there is no polkit on this machine" }
        for directory in older {
            if let file = Self.olderFile(in: directory) { obstacle = "\(file) may permit it" }
        }
    }

    /// Whether this user may reload this unit.
    func permission(toReload unit: String, user: String) -> Permission {
        if let obstacle { return .unknown(obstacle) }
        let names = [Polkit.literal(unit), "\"\(unit)\"", "'\(unit)'"]
        let candidates = texts.filter { Self.mayPermit($0, user: user) }
        if candidates.contains(where: { text in names.contains { text.contains($0) } }) { return .named }
        return candidates.allSatisfy(Self.comparesNames)
            ? .missing : .unknown("a rule may permit it without the name of the unit")
    }

    /// Whether a file may permit any action on units to the user. A rule permits something with `polkit.Result.YES` or
    /// `"yes"`, and looks at `action.id` unless it permits everything.
    private static func mayPermit(_ text: String, user: String) -> Bool {
        guard text.lowercased().contains("yes") else { return false }
        let isAboutOtherActions =
            text.contains("action.id") && !text.contains("systemd1") && !text.contains(user)
            && !["action.id.", "test(action.id", "exec(action.id"].contains { text.contains($0) }
        return !isAboutOtherActions
    }

    /// Whether a file has one rule that compares the name of the unit with whole names only.
    private static func comparesNames(_ text: String) -> Bool {
        guard text.ranges(of: "addRule").count == 1,
            text.contains("action.lookup(\"unit\")") || text.contains("action.lookup('unit')")
        else { return false }
        let partial = [
            "startsWith", "endsWith", "test(", "match(", "search(", "exec(", "RegExp", "substr", "slice(", "spawn(",
            ".indexOf(\"", ".indexOf('", "lookup(\"unit\").", "lookup('unit').", "!",
        ]
        return !partial.contains { text.contains($0) }
    }

    /// A file of the older format that may be about actions on units; nil: there is none. Debian installs files for
    /// other actions, even if nothing reads this format.
    private static func olderFile(in directory: String) -> String? {
        for below in names(in: directory) ?? [] {
            for name in names(in: "\(directory)/\(below)") ?? [] where name.hasSuffix(".pkla") {
                let file = "\(directory)/\(below)/\(name)"
                guard let text = text(of: file) else { return file }
                for line in text.split(separator: "\n") where line.hasPrefix("Action") {
                    if line.contains("systemd1") || line.contains("*") { return file }
                }
            }
        }
        return nil
    }

    /// The names in a directory; nil: it cannot be read, and `errno` has the reason.
    private static func names(in directory: String) -> [String]? {
        guard let stream = opendir(directory) else { return nil }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream), names.count < 10 * fileLimit {
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                })
        }
        return names
    }

    /// The text of a regular file; nil: it cannot be read, or is too long.
    private static func text(of path: String) -> String? {
        // Non-blocking, because a FIFO may have the name.
        guard
            let file = try? OwnedDescriptor(
                open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), of: "open", subject: path)
        else { return nil }
        var status = stat()
        guard fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= sizeLimit
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: sizeLimit)
        let count = bytes.withUnsafeMutableBytes { read(file.rawValue, $0.baseAddress, $0.count) }
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
