import Glibc

/// A directory of a test's own that goes with it.
final class TemporaryDirectory: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/freshet-test.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failed(errno: errno) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    struct Failed: Error { var errno: Int32 }

    deinit {
        for name in names { unlink("\(path)/\(name)") }
        rmdir(path)
    }

    private var names: [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    /// Writes a file in place and returns its path.
    @discardableResult
    func write(_ name: String, _ text: String) throws -> String {
        let file = "\(path)/\(name)"
        let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failed(errno: errno) }
        defer { close(descriptor) }
        guard Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count else { throw Failed(errno: errno) }
        return file
    }

    func read(_ name: String) -> String? { readFile("\(path)/\(name)") }

    func makeFIFO(_ name: String) throws -> String {
        guard mkfifo("\(path)/\(name)", 0o600) == 0 else { throw Failed(errno: errno) }
        return "\(path)/\(name)"
    }

    func rename(_ name: String, to other: String) throws {
        guard Glibc.rename("\(path)/\(name)", "\(path)/\(other)") == 0 else { throw Failed(errno: errno) }
    }
}

func readFile(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 4_096)
    let count = Glibc.read(descriptor, &buffer, buffer.count)
    return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
}

/// Whether a process runs: a zombie that nobody has reaped does not.
func isRunning(_ process: Int) -> Bool {
    guard let status = readFile("/proc/\(process)/stat"), let name = status.lastIndex(of: ")") else { return false }
    return !status[name...].dropFirst(2).hasPrefix("Z")
}

/// Ends a process that a test left behind on purpose.
func endProcess(_ process: Int32) { kill(process, SIGKILL) }

/// Where the build puts executables: beside the one that runs the tests.
func productsDirectory() throws -> String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    guard count > 0 else { throw TemporaryDirectory.Failed(errno: errno) }
    let path = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
}
