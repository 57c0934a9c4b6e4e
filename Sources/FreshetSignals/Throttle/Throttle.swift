extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The sequence, with at most one element in each interval.
    ///
    /// ```
    /// upstream                       ab-c---d|
    /// throttle(for: 4, latest: true)  a---c---d|
    /// throttle(for: 4, latest: false) a---b---d|
    /// ```
    ///
    /// **Meaning.** The first element is delivered immediately and begins an interval. Of the elements during an
    /// interval the latest or the first is held, and delivered when the interval ends, which begins the next interval.
    /// An element outside an interval is delivered immediately. At the same instant elements come before timers. When
    /// the upstream ends, a held element is delivered at its time, then the result ends.
    ///
    /// Making the iterator subscribes to the upstream; it is read from the first `next()` on. With an interval of zero
    /// or less each element is delivered immediately.
    ///
    /// **Errors.** A failure of the upstream is thrown immediately; a held element is dropped.
    ///
    /// **Cancellation.** `next()` returns nil when the upstream's iteration and the timer have ended.
    ///
    /// **Back-pressure.** The upstream is read continuously. One element is held. If no `next()` is waiting, a newer
    /// element replaces it if `latest` is true, and is dropped otherwise. An interval begins when the consumer takes an
    /// element.
    ///
    /// **Cost.** Two tasks for each iteration, one lock for each element. There is a timer only while an element is
    /// held and a `next()` is waiting.
    ///
    /// - Parameters:
    ///   - interval: The minimum time between two deliveries.
    ///   - latest: Whether the last element in an interval is delivered; otherwise the first.
    ///   - clock: Measures the interval.
    public func throttle<C: Clock<Duration>>(
        for interval: Duration, latest: Bool, clock: C = ContinuousClock()
    ) -> some AsyncSequence<Element, Failure> & Sendable {
        Paced(base: self, rule: ThrottleRule<C.Instant>(interval: interval, latest: latest), clock: clock)
    }
}
