/// Detects that a call of a library does not end because of one transfer: libcurl, for instance, reads the answer of a
/// proxy in one call for as long as bytes arrive, and such a call would hold the event loop.
///
/// The library reports each step of a transfer with a callback, and handles one transfer after the other in a call. So
/// each transfer has its own limit in a call:
///
///     limit.beginCall()
///     curl_multi_socket_action(…)  // its callback ends a transfer if `limit.isExceeded(by: transfer)`
///
/// Many short steps are the sign of such a transfer. A call with fewer than ``stepsBetweenChecks`` steps is never too
/// long: a single step may take long for a good reason, such as the system's certificate authorities, which OpenSSL
/// reads in more than 100 ms on a slow machine.
///
/// Not `Sendable`: it is used on the thread that calls the library.
package final class CallLimit {
    /// The most processor time of one transfer in one call. An ordinary call takes a few milliseconds.
    static let longest: Duration = .milliseconds(100)
    /// The number of steps after which the processor time is read: a few milliseconds. An ordinary call has about ten
    /// steps. libcurl makes one step for each byte of a proxy's answer, which is usually shorter than this number.
    static let stepsBetweenChecks = 4_096

    private let time: () -> Duration
    private var transfer: ObjectIdentifier?
    private var steps = 0
    private var began: Duration = .zero

    /// - Parameter time: the processor time of the calling thread.
    package init(time: @escaping () -> Duration = { ProcessorTime.used }) { self.time = time }

    /// Begins a call of the library.
    package func beginCall() { transfer = nil }

    /// Counts a step of a transfer. Returns whether the transfer must end, because it uses too much processor time in
    /// this call.
    package func isExceeded(by transfer: AnyObject) -> Bool {
        if self.transfer != ObjectIdentifier(transfer) {
            self.transfer = ObjectIdentifier(transfer)
            steps = 0
        }
        steps += 1
        guard steps.isMultiple(of: Self.stepsBetweenChecks) else { return false }
        let now = time()
        if steps == Self.stepsBetweenChecks { began = now }
        return now - began > Self.longest
    }
}
