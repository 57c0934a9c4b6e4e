import CLinux
import Glibc

/// Hears that CLOCK_REALTIME was set, or that the machine was resumed: what the kernel calls a discontinuous change of
/// the clock (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET).
///
/// A clock that is slewed (adjtime(3), the usual work of NTP) is not heard. It costs nothing until then, and wakes an
/// idle loop.
public final class ClockSetDescriptor: Sendable {
    private let descriptor: OwnedDescriptor
    private let watch: DescriptorWatch

    /// Begins to listen; the handler runs on the loop's thread, once for any number of changes that came together.
    public init(_ loop: EventLoop, _ handler: @escaping @Sendable () -> Void) throws(SystemCallError) {
        let descriptor = try OwnedDescriptor(
            timerfd_create(CLOCK_REALTIME, Int32(TFD_CLOEXEC | TFD_NONBLOCK)), of: "timerfd_create")
        self.descriptor = descriptor
        try Self.arm(descriptor)
        watch = try loop.watch(descriptor.rawValue, for: .read) { _ in
            var expirations: UInt64 = 0
            let count = read(descriptor.rawValue, &expirations, MemoryLayout<UInt64>.size)
            let wasSet = count < 0 && errno == ECANCELED
            // The man page does not promise that it goes on listening after a change. One that comes before this is in
            // force is forgotten with it, but the handler, which is still to come, sees what it did to the clock.
            try? Self.arm(descriptor)
            if wasSet { handler() }
        }
    }

    deinit { watch.cancel() }

    /// For the end of time: the timer is there to be cancelled, not to expire.
    private static func arm(_ descriptor: OwnedDescriptor) throws(SystemCallError) {
        var setting = itimerspec()
        setting.it_value.tv_sec = Int.max
        let flags = Int32(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET)
        guard timerfd_settime(descriptor.rawValue, flags, &setting, nil) == 0 else {
            throw SystemCallError("timerfd_settime", errno: errno)
        }
    }
}
