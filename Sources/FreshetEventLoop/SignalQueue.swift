import CLinux
import Glibc

/// Unix signals that wait in a descriptor until they are taken (signalfd(2)), for a program without a loop that waits
/// with poll(2) for signals and other events.
///
/// They are blocked in the calling thread while this object exists. Children inherit the blocked signals: a program
/// that starts children has to unblock the signals there.
public final class SignalQueue {
    private let descriptor: OwnedDescriptor
    private var signals = sigset_t()
    private var before = sigset_t()

    /// Blocks the signals and starts to collect them. Make it before there is another thread.
    public init(_ signals: [Int32]) throws(SystemCallError) {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        descriptor = try OwnedDescriptor(signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK)), of: "signalfd")
        self.signals = set
        pthread_sigmask(SIG_BLOCK, &set, &before)
    }

    deinit { pthread_sigmask(SIG_SETMASK, &before, nil) }

    /// The descriptor for poll(2): readable if a signal can be taken.
    public var rawValue: Int32 { descriptor.rawValue }

    /// Takes the next signal; nil if none has arrived.
    public func take() -> Int32? {
        var info = signalfd_siginfo()
        let size = MemoryLayout<signalfd_siginfo>.size
        return read(descriptor.rawValue, &info, size) == size ? Int32(info.ssi_signo) : nil
    }

    /// Applies the default action of a signal to this process, as if the signal had not been blocked: it ends or stops
    /// the process. Returns if the process was not ended.
    public func deliver(_ signal: Int32) {
        var one = sigset_t()
        sigemptyset(&one)
        sigaddset(&one, signal)
        // The language's runtime may have installed its own handler, which prints a backtrace.
        var usual = sigaction()
        usual.__sigaction_handler.sa_handler = SIG_DFL
        sigaction(signal, &usual, nil)
        raise(signal)
        pthread_sigmask(SIG_UNBLOCK, &one, nil)
        pthread_sigmask(SIG_BLOCK, &one, nil)
    }
}
