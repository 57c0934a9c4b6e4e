extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The sequence, with many elements in a short time delivered as one.
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
    /// **Meaning.** It is calm at the start, and when `quiet` has passed without an element. In calm the first element
    /// begins a storm: with `leading` it passes at once, else it is held. In a storm the last element is held; for a
    /// signal, whose firings carry nothing, that is one firing. When `quiet` has passed since the last one it is
    /// delivered, and it is calm. When `atMost` has passed since the first of those that were held, the last one is
    /// delivered, and the storm goes on. At one instant elements come before timers. At the upstream's end a held
    /// element is delivered at once, then the end.
    ///
    /// The upstream is subscribed when the iterator is made, and read from the first `next()` on. A time of zero or
    /// less is no wait at all: each element is due at once.
    ///
    /// **Errors.** Those of the upstream, at once; a held element is dropped.
    ///
    /// **Cancellation.** `next()` returns nil when the upstream's iteration and the timer have ended.
    ///
    /// **Back-pressure.** The upstream is read on and on. One element is held; while nobody asks, a newer one takes its
    /// place, also when it was due already, and its quiet is waited for anew.
    ///
    /// **Cost.** Two tasks an iteration, one lock per element. A storm sets no timer per element; while nothing is held
    /// or nobody asks there is no timer.
    ///
    /// - Parameters:
    ///   - quiet: How long no element has to come.
    ///   - atMost: How long elements may be held during a storm that does not end; nil for as long as it lasts.
    ///   - leading: The element that begins a storm passes at once.
    ///   - clock: Measures both times.
    public func debounce<C: Clock<Duration>>(
        for quiet: Duration, atMost: Duration?, leading: Bool = false, clock: C = ContinuousClock()
    ) -> some AsyncSequence<Element, Failure> & Sendable {
        Paced(
            base: self, rule: DebounceRule<C.Instant>(quiet: quiet, atMost: atMost, leading: leading), clock: clock)
    }
}
