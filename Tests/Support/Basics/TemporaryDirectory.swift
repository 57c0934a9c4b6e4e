import Glibc
import Testing

/// A directory of a test, removed with its content when the value is destroyed.
package final class TemporaryDirectory: Sendable {
    package let path: String

    /// Where directories of tests are made by default: `TMPDIR`, or `/tmp`.
    package static var usualParent: String { getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp" }

    /// A directory in memory, if possible: for tests that make thousands of directories.
    package static var parentInMemory: String {
        access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : usualParent
    }

    package init(below parent: String = TemporaryDirectory.usualParent) throws {
        var template = Array("\(parent)/freshet-test-XXXXXX".utf8CString)
        _ = try #require(mkdtemp(&template), "mkdtemp in \(parent): errno \(errno)")
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { Self.remove(path) }

    /// The path of a file in it, which need not exist.
    package func path(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file in place, not by renaming, and returns its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        let file = path(name)
        try Self.write(Array(text.utf8), to: file)
        return file
    }

    /// A file as text; nil if it cannot be opened.
    package func text(_ name: String) -> String? { Self.text(path(name)) }

    package func rename(_ name: String, to other: String) throws {
        try #require(Glibc.rename(path(name), path(other)) == 0, "\(name) to \(other): errno \(errno)")
    }

    @discardableResult
    package func makeFIFO(_ name: String) throws -> String {
        try #require(mkfifo(path(name), 0o600) == 0, "\(name): errno \(errno)")
        return path(name)
    }

    @discardableResult
    package func makeDirectory(_ name: String) throws -> String {
        try #require(mkdir(path(name), 0o755) == 0, "\(name): errno \(errno)")
        return path(name)
    }

    // MARK: - Any path

    /// A file as text; nil if it cannot be opened.
    package static func text(_ path: String) -> String? {
        (try? read(path)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The bytes of a file.
    package static func read(_ path: String) throws -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Unreadable(path: path, errno: errno) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count >= 0 else { throw Unreadable(path: path, errno: errno) }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
        }
    }

    /// Writes a file in place; a new file is accessible only for its owner.
    package static func write(_ bytes: [UInt8], to path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0, "\(path): errno \(errno)")
        defer { close(descriptor) }
        try #require(Glibc.write(descriptor, bytes, bytes.count) == bytes.count, "\(path): errno \(errno)")
    }

    /// The names in a directory, sorted; none if it cannot be opened.
    package static func names(_ path: String) -> [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// Removes a tree, as far as possible.
    package static func remove(_ path: String) {
        for name in names(path) {
            let child = path + "/" + name
            if unlink(child) != 0 { remove(child) }
        }
        rmdir(path)
    }

    /// Thrown, not recorded as an issue: some tests read files that may be missing.
    package struct Unreadable: Error {
        package let path: String
        package let errno: Int32
    }
}
