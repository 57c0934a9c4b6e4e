import CLinux
import Glibc
import Synchronization

/// Ends the processes of a command whose supervisor was killed, for example by the command itself.
///
/// A supervisor adopts the orphans of a command (``ChildProcess``, `endsDescendants`). This process becomes a
/// subreaper, too (prctl(2), PR_SET_CHILD_SUBREAPER), so that it adopts the orphans of a killed supervisor. A child
/// without a ``ChildProcess`` is then such an orphan, unless it existed before.
public final class StrayProcessKiller: Sendable {
    /// Ending a process takes the kernel a moment, and its children then become children of this process.
    private static let delays = (first: Duration.milliseconds(5), longest: Duration.seconds(1))

    private let children: ChildRegistry
    /// Children that existed before: those of a program that executed this one.
    private let earlier: Set<Int32>
    private let timer = Mutex<LoopTimer?>(nil)
    private let delay = Mutex(StrayProcessKiller.delays.first)

    /// Call it before the loop has a ``ChildProcess``. Do not use it in process 1, which adopts all orphans: see
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

    /// Ends the current stray processes, and repeats this until there are none.
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

    /// The children of all threads (proc(5), /proc/PID/task/TID/children). Empty if the kernel does not provide the
    /// list.
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
