import CLinux
import Glibc
import Synchronization

/// Ends processes of a command whose supervisor was killed, such as by the command itself.
///
/// A supervisor adopts what a command leaves behind (``ChildProcess``, `endsDescendants`). This process becomes a subreaper
/// too (prctl(2), PR_SET_CHILD_SUBREAPER), so that it adopts what a killed supervisor leaves behind. Each child that is not
/// a ``ChildProcess`` is then such a process, except those that were there before.
public final class StrayProcessKiller: Sendable {
    /// The kernel needs a moment for the end of a process, and each hands its own children over.
    private static let delays = (first: Duration.milliseconds(5), longest: Duration.seconds(1))

    private let children: ChildRegistry
    /// Those that were there before: of a program that became this one.
    private let earlier: Set<Int32>
    private let timer = Mutex<LoopTimer?>(nil)
    private let delay = Mutex(StrayProcessKiller.delays.first)

    /// To be called before the loop has any ``ChildProcess``. Not for process 1, which adopts everybody's orphans: see
    /// ``OrphanReaper``.
    public init(_ loop: EventLoop) throws(SystemCallError) {
        guard freshet_prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 else { throw SystemCallError("prctl", errno: errno) }
        children = loop.children
        earlier = Self.currentChildren()
        timer.withLock { $0 = LoopTimer(loop) { [weak self] in self?.sweep() } }
        children.whenSupervisorIsLost { [weak self] in self?.begin() }
    }

    private func begin() {
        delay.withLock { $0 = Self.delays.first }
        sweep()
    }

    /// Ends those that are there, and comes back until none is.
    private func sweep() {
        let strays = children.strays(among: Self.currentChildren().subtracting(earlier))
        for stray in strays ?? [] {
            kill(stray, SIGKILL)
            waitpid(stray, nil, WNOHANG)
        }
        guard strays?.isEmpty != true else { return }
        let pause = delay.withLock { delay in
            defer { delay = min(delay * 2, Self.delays.longest) }
            return delay
        }
        timer.withLock { $0 }?.arm(at: .now + pause)
    }

    /// The children of all threads (proc(5), /proc/PID/task/TID/children). None where the kernel lists none.
    private static func currentChildren() -> Set<Int32> {
        guard let threads = opendir("/proc/self/task") else { return [] }
        defer { closedir(threads) }
        var result: Set<Int32> = []
        while let entry = readdir(threads) {
            let thread = withUnsafeBytes(of: entry.pointee.d_name) { name in
                String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
            }
            let path = "/proc/self/task/\(thread)/children"
            guard !thread.hasPrefix("."), let list = try? OwnedDescriptor(open(path, O_RDONLY | O_CLOEXEC), of: "open")
            else { continue }
            result.formUnion(numbers(in: list))
        }
        return result
    }

    private static func numbers(in list: OwnedDescriptor) -> [Int32] {
        var text: [UInt8] = []
        withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 1) { buffer in
            while case let count = read(list.rawValue, buffer.baseAddress, buffer.count), count > 0 {
                text.append(contentsOf: buffer[..<count])
            }
        }
        return text.split(separator: UInt8(ascii: " ")).compactMap { Int32(String(decoding: $0, as: UTF8.self)) }
    }
}
