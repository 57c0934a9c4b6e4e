import CLinux
import Glibc

/// The memory that a supervisor process shares with this process: its stack, and its report (`supervise.h`).
///
/// `@unchecked Sendable`: only the supervisor writes between ``start(_:)`` and its end, and the status is read after
/// the kernel has reported that end.
final class ProcessSupervision: @unchecked Sendable {
    private static let size = Int(FRESHET_SUPERVISOR_STACK) + MemoryLayout<freshet_supervision>.stride
    private let memory: UnsafeMutableRawPointer
    private let record: UnsafeMutablePointer<freshet_supervision>

    init() throws(SystemCallError) {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS
        guard let memory = mmap(nil, Self.size, PROT_READ | PROT_WRITE, flags, -1, 0), memory != MAP_FAILED else {
            throw SystemCallError("mmap", errno: errno)
        }
        self.memory = memory
        record = (memory + Int(FRESHET_SUPERVISOR_STACK)).bindMemory(to: freshet_supervision.self, capacity: 1)
        record.initialize(to: freshet_supervision())
    }

    // The supervisor has ended: the owner of a child reaps it before this.
    deinit { munmap(memory, Self.size) }

    /// Starts the supervisor, which starts the program.
    ///
    /// - Returns: The supervisor's process id, or -1.
    func start(_ spawn: inout freshet_spawn) -> Int32 {
        record.pointee.spawn = spawn
        record.pointee.parent = getpid()
        let identifier = freshet_supervise(record, memory.assumingMemoryBound(to: CChar.self))
        spawn = record.pointee.spawn
        return identifier
    }

    /// The exit of the program; nil if the supervisor was killed before.
    var exit: ChildProcess.Exit? {
        let status = record.pointee.status
        guard status >= 0 else { return nil }
        // wait(2): the low seven bits are the signal, the next byte is the exit status.
        let signal = status & 0x7f
        return signal == 0 ? .exited(status: status >> 8 & 0xff) : .signalled(signal)
    }
}
