import FreshetEventLoop
import Glibc

/// Runs a body with a loop that runs in its own thread, and stops the loop afterwards.
func withLoop<Result: Sendable>(
    _ body: @escaping @Sendable (EventLoop) async throws -> Result
) async throws -> Result {
    let loop = try EventLoop()
    try loop.runInThread(named: "test-loop")
    defer { loop.stop() }
    return try await Task(executorPreference: loop) { try await body(loop) }.value
}

/// A pipe whose ends are closed with the object.
final class Pipe: Sendable {
    let reading: OwnedDescriptor
    let writing: OwnedDescriptor

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SystemCallError("pipe", errno: errno) }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        reading = OwnedDescriptor(ends[0])
        writing = OwnedDescriptor(ends[1])
    }

    func write(_ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { Glibc.write(writing.rawValue, $0.baseAddress, $0.count) }
    }

    func read() -> String {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = Glibc.read(reading.rawValue, &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }
}
