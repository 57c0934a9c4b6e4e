import FreshetModel
import Glibc
import Synchronization

/// The time zones of this machine, from the files of the IANA time zone database.
///
/// The files are short, and on the file system of the C library, which reads them in the same way. Safe to call from any
/// thread.
final class ZoneFiles: Sendable {
    private static let directory = "/usr/share/zoneinfo"
    /// The link to the local time zone (localtime(5)).
    static let localFile = "/etc/localtime"

    /// The rules that were read, by name; the empty name is the local time zone.
    private let known = Mutex<[String: TimeZoneRules]>([:])
    private let localFile: String
    /// `$TZ`, which comes before the file; nil: it is not set.
    private let variable: String?

    init(localFile: String = ZoneFiles.localFile, variable: String? = getenv("TZ").map { String(cString: $0) }) {
        self.localFile = localFile
        self.variable = variable
    }

    /// The rules of a time zone; nil is the local one. An unknown time zone is UTC.
    func rules(named name: String?) -> TimeZoneRules {
        if let rules = known.withLock({ $0[name ?? ""] }) { return rules }
        let rules = name.map { Self.rules(of: $0) } ?? local()
        return known.withLock { known in
            known[name ?? ""] = rules ?? .utc
            return rules ?? .utc
        }
    }

    /// Forgets what was read: a file has changed.
    func forget() { known.withLock { $0 = [:] } }

    /// Whether there is a time zone of this name.
    static func exists(_ name: String) -> Bool { rules(of: name) != nil }

    private static func rules(of name: String) -> TimeZoneRules? {
        guard name != "UTC" else { return .utc }
        // The name comes from the configuration, and must not lead out of the directory.
        guard !name.hasPrefix("/"), !name.split(separator: "/").contains("..") else { return nil }
        return content(of: "\(directory)/\(name)").flatMap { TimeZoneRules($0, name: name) }
    }

    private func local() -> TimeZoneRules? {
        if let variable {
            let name = variable.hasPrefix(":") ? String(variable.dropFirst()) : variable
            guard name.hasPrefix("/") else { return Self.rules(of: name) }
            return Self.content(of: name).flatMap { TimeZoneRules($0, name: name) }
        }
        guard let content = Self.content(of: localFile) else { return nil }
        return TimeZoneRules(content, name: Self.name(ofLink: localFile) ?? "the local time zone")
    }

    /// The name of the time zone that a link leads to.
    private static func name(ofLink path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        let target = String(cString: resolved)
        return target.hasPrefix("\(directory)/") ? String(target.dropFirst(directory.count + 1)) : nil
    }

    private static func content(of path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            (1...TimeZoneRules.maximumSize).contains(Int(status.st_size))
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        return count == bytes.count ? bytes : nil
    }
}
