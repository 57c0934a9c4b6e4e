import FreshetEventLoop
import Glibc
import TestSupport
import Testing

@Suite(
    "A real jump of the boot clock", .enabled(if: geteuid() == 0, "time namespaces need root"),
    .hangLimit)
struct ClockJumpTests {
    @Test("is a resume: first the hook, then the signal's subscriber, then the overdue timer")
    func jump() async throws {
        try await withBusLoop { loop in
            var toWitness: [Int32] = [-1, -1]
            var fromWitness: [Int32] = [-1, -1]
            try #require(pipe(&toWitness) == 0 && pipe(&fromWitness) == 0)
            let (input, output) = (OwnedDescriptor(toWitness[1]), OwnedDescriptor(fromWitness[0]))
            let witness = try ChildProcess(
                loop, ChildProcess.Command(path: try Self.witness()), input: toWitness[0], output: fromWitness[1],
                error: fromWitness[1])
            close(toWitness[0])
            close(fromWitness[1])
            try #require(Self.line(output) == "armed")
            try #require(write(input.rawValue, "j.", 2) == 2)
            #expect(Self.line(output) == "hook")
            let received = Self.line(output)
            #expect(received == "resume slept 7200.0 s, 1")
            #expect(Self.line(output) == "timer")
            // Keep it until here: releasing it would close the pipe.
            withExtendedLifetime(input) {}
            #expect(await witness.wait() == .exited(status: 0))
        }
    }

    /// It is next to the tests' own bundle.
    private static func witness() throws -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        try #require(count > 0)
        let path = String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return String(path[..<(try #require(path.lastIndex(of: "/")))]) + "/SleepWitness"
    }

    /// Waits for a line, for at most half a minute; returns the part that has arrived.
    private static func line(_ descriptor: OwnedDescriptor) -> String {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        var wait = pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0)
        while poll(&wait, 1, 30_000) == 1, read(descriptor.rawValue, &byte, 1) == 1, byte != UInt8(ascii: "\n") {
            line.append(byte)
        }
        return String(decoding: line, as: UTF8.self)
    }
}
