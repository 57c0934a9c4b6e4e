import CLinux
import Glibc

/// Unix signals as events of a loop (signalfd(2)), instead of interruptions.
public final class SignalDescriptor: Sendable {
    /// One signal that arrived.
    public struct Arrival: Hashable, Sendable {
        /// The signal's number, such as `SIGHUP`.
        public let signal: Int32
        /// The process that sent it; 0 if the kernel sent it.
        public let sender: Int32
        /// Whether the kernel sent it (`SI_KERNEL`): for SIGHUP, the controlling terminal was closed.
        public let isFromKernel: Bool
    }

    private let descriptor: OwnedDescriptor
    private let watch: DescriptorWatch

    /// Blocks the signals in the calling thread, and in all threads that it starts afterwards.
    ///
    /// Call it at the start of `main`, before there is another thread: a signal may interrupt, or end, a thread that
    /// does not block it.
    public static func block(_ signals: [Int32]) {
        var set = Self.set(of: signals)
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Receives signals that all threads block; the handler runs on the loop's thread.
    public init(
        _ loop: EventLoop, _ signals: [Int32], _ handler: @escaping @Sendable (Arrival) -> Void
    ) throws(SystemCallError) {
        var set = Self.set(of: signals)
        let descriptor = try OwnedDescriptor(
            signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK)), of: "signalfd")
        self.descriptor = descriptor
        watch = try loop.watch(descriptor.rawValue, for: .read) { _ in
            var info = signalfd_siginfo()
            let size = MemoryLayout<signalfd_siginfo>.size
            while read(descriptor.rawValue, &info, size) == size {
                handler(
                    Arrival(
                        signal: Int32(info.ssi_signo), sender: Int32(bitPattern: info.ssi_pid),
                        isFromKernel: info.ssi_code == SI_KERNEL))
            }
        }
    }

    deinit { watch.cancel() }

    private static func set(of signals: [Int32]) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        return set
    }
}
