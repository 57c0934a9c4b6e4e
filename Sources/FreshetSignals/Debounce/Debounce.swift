extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The sequence, with the elements of a burst delivered as one.
    ///
    /// ```
    /// upstream                                    a-bc-------d--
    /// debounce(for: 3, atMost: nil)               ------c-------d
    /// debounce(for: 3, atMost: nil, leading: true)  a-----c----d--
    ///
    /// upstream                                    abcdefgh------
    /// debounce(for: 3, atMost: 5)                 -----f----h---
    /// ```
    ///
    /// **Meaning.** A burst is a series of elements with gaps no longer than `quiet`. The first element after a quiet
    /// period begins a burst; the time before the first element counts as a quiet period. With `leading` that first
    /// element is delivered immediately, otherwise it is held. During a burst only the last element is held; for a
    /// signal, whose firings carry no value, that is one firing. When `quiet` has passed since the last element, the
    /// held element is delivered and the burst has ended. When `atMost` has passed since the first element that was
    /// held, the last element is delivered and the burst continues. At the same instant elements come before timers.
    /// When the upstream ends, a held element is delivered immediately, then the result ends.
    ///
    /// Making the iterator subscribes to the upstream; it is read from the first `next()` on. A duration of zero or
    /// less means no delay: each element is delivered immediately.
    ///
    /// **Errors.** A failure of the upstream is thrown immediately; a held element is dropped.
    ///
    /// **Cancellation.** `next()` returns nil when the upstream's iteration and the timer have ended.
    ///
    /// **Back-pressure.** The upstream is read continuously. One element is held. If no `next()` is waiting, a newer
    /// element replaces it, even if it was already due, and the quiet period starts again.
    ///
    /// **Cost.** Two tasks for each iteration, one lock for each element. A burst does not set a timer for each
    /// element. While no element is held or no `next()` is waiting, there is no timer.
    ///
    /// - Parameters:
    ///   - quiet: How long no element must arrive before the held element is delivered.
    ///   - atMost: How long elements may be held during a burst; nil for no limit.
    ///   - leading: Whether the first element of a burst is delivered immediately.
    ///   - clock: Measures both times.
    public func debounce<C: Clock<Duration>>(
        for quiet: Duration, atMost: Duration?, leading: Bool = false, clock: C = ContinuousClock()
    ) -> some AsyncSequence<Element, Failure> & Sendable {
        Paced(
            base: self, rule: DebounceRule<C.Instant>(quiet: quiet, atMost: atMost, leading: leading), clock: clock)
    }
}
