import Glibc
import TestSupport
import Testing

/// Whether a process runs. A zombie does not run.
func isRunning(_ process: Int) -> Bool {
    guard let status = TemporaryDirectory.text("/proc/\(process)/stat"), let name = status.lastIndex(of: ")") else {
        return false
    }
    return !status[name...].dropFirst(2).hasPrefix("Z")
}

/// Ends a process that a test left behind on purpose.
func endProcess(_ process: Int32) { kill(process, SIGKILL) }

/// The directory of the built executables: that of the executable that runs the tests.
func productsDirectory() throws -> String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    try #require(count > 0, "/proc/self/exe: errno \(errno)")
    let path = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
}
