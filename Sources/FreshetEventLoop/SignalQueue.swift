import CLinux
import Glibc

/// Unix signals that wait in a descriptor until they are taken (signalfd(2)), for a program without a loop that waits with
/// poll(2) for them and for other things.
///
/// They are blocked in the calling thread as long as this is kept, and not handed to children: a program that starts some
/// unblocks them there.
public final class SignalQueue {
    private let descriptor: OwnedDescriptor
    private var signals = sigset_t()
    private var before = sigset_t()

    /// Blocks the signals and begins to collect them. Make it before any other thread exists.
    public init(_ signals: [Int32]) throws(SystemCallError) {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        descriptor = try OwnedDescriptor(signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK)), of: "signalfd")
        self.signals = set
        pthread_sigmask(SIG_BLOCK, &set, &before)
    }

    deinit { pthread_sigmask(SIG_SETMASK, &before, nil) }

    /// For poll(2): readable when there is a signal to take.
    public var rawValue: Int32 { descriptor.rawValue }

    /// The next signal that has arrived; nil: none.
    public func take() -> Int32? {
        var info = signalfd_siginfo()
        let size = MemoryLayout<signalfd_siginfo>.size
        return read(descriptor.rawValue, &info, size) == size ? Int32(info.ssi_signo) : nil
    }

    /// Lets a signal do to this process what it would have done if it had not been blocked: end it, or stop it. Returns when
    /// it did not end it.
    public func deliver(_ signal: Int32) {
        var one = sigset_t()
        sigemptyset(&one)
        sigaddset(&one, signal)
        // The language's runtime may have put a handler of its own there, which prints how the program got here.
        var usual = sigaction()
        usual.__sigaction_handler.sa_handler = SIG_DFL
        sigaction(signal, &usual, nil)
        raise(signal)
        pthread_sigmask(SIG_UNBLOCK, &one, nil)
        pthread_sigmask(SIG_BLOCK, &one, nil)
    }
}
