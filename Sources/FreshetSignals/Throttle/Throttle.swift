extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The sequence, with at most one element an interval.
    ///
    /// ```
    /// upstream                       ab-c---d|
    /// throttle(for: 4, latest: true)  a---c---d|
    /// throttle(for: 4, latest: false) a---b---d|
    /// ```
    ///
    /// **Meaning.** The first element is delivered at once and begins an interval. Of those that come in an interval
    /// the latest or the first is held, and delivered when the interval ends, which begins the next one. An element
    /// that comes when no interval lasts is delivered at once. At one instant elements come before timers. At the
    /// upstream's end a held element is delivered at its time, then the end.
    ///
    /// The upstream is subscribed when the iterator is made, and read from the first `next()` on. An interval of zero
    /// or less never lasts: each element is due at once.
    ///
    /// **Errors.** Those of the upstream, at once; a held element is dropped.
    ///
    /// **Cancellation.** `next()` returns nil when the upstream's iteration and the timer have ended.
    ///
    /// **Back-pressure.** The upstream is read on and on. One element is held; while nobody asks, a newer one takes its
    /// place if `latest` is true, and is dropped if not. An interval begins when its element is taken.
    ///
    /// **Cost.** Two tasks an iteration, one lock per element. There is a timer only while an element is held and
    /// somebody asks.
    ///
    /// - Parameters:
    ///   - interval: How much time lies between two deliveries at least.
    ///   - latest: Of the elements in an interval the last is delivered; otherwise the first.
    ///   - clock: Measures the interval.
    public func throttle<C: Clock<Duration>>(
        for interval: Duration, latest: Bool, clock: C = ContinuousClock()
    ) -> some AsyncSequence<Element, Failure> & Sendable {
        Paced(base: self, rule: ThrottleRule<C.Instant>(interval: interval, latest: latest), clock: clock)
    }
}
