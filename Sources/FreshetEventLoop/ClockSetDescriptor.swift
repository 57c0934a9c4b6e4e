import CLinux
import Glibc

/// Calls a handler when CLOCK_REALTIME was set or the machine was resumed: the kernel calls this a discontinuous change
/// of the clock (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET).
///
/// Slewing the clock (adjtime(3), as NTP usually does) does not call the handler. The watch costs nothing until a
/// change, and a change wakes an idle loop.
public final class ClockSetDescriptor: Sendable {
    private let descriptor: OwnedDescriptor
    private let watch: DescriptorWatch

    /// Starts the watch. The handler runs on the loop's thread, once for changes that come together.
    public init(_ loop: EventLoop, _ handler: @escaping @Sendable () -> Void) throws(SystemCallError) {
        let descriptor = try OwnedDescriptor(
            timerfd_create(CLOCK_REALTIME, Int32(TFD_CLOEXEC | TFD_NONBLOCK)), of: "timerfd_create")
        self.descriptor = descriptor
        try Self.arm(descriptor)
        watch = try loop.watch(descriptor.rawValue, for: .read) { _ in
            var expirations: UInt64 = 0
            let count = read(descriptor.rawValue, &expirations, MemoryLayout<UInt64>.size)
            let wasSet = count < 0 && errno == ECANCELED
            // The man page does not promise that the timer reports further changes, so arm it again. A change before
            // this call is lost, but the handler runs after it and reads the changed clock.
            try? Self.arm(descriptor)
            if wasSet { handler() }
        }
    }

    deinit { watch.cancel() }

    /// Arms the timer for the latest possible time: it should be cancelled, not expire.
    private static func arm(_ descriptor: OwnedDescriptor) throws(SystemCallError) {
        var setting = itimerspec()
        setting.it_value.tv_sec = Int.max
        let flags = Int32(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET)
        guard timerfd_settime(descriptor.rawValue, flags, &setting, nil) == 0 else {
            throw SystemCallError("timerfd_settime", errno: errno)
        }
    }
}
