import FreshetSignals
import FreshetTestKit
import Testing

@Suite("throttle, as marble diagrams")
struct ThrottleMarbles {
    let stage = MarbleStage()

    /// `throttle` with its interval in frames.
    func throttle<S: AsyncSequence & Sendable>(
        _ upstream: S, _ interval: Int, latest: Bool
    ) -> some AsyncSequence<S.Element, S.Failure> & Sendable where S.Element: Sendable {
        upstream.throttle(for: stage.frames(interval), latest: latest, clock: stage.clock)
    }

    @Test("the first element passes immediately, then the latest of each interval")
    func latest() throws {
        let upstream = stage.hot("-abcdefgh----")
        let expected: Marbles = " -a---e---h---"
        try stage.expect(throttle(upstream, 4, latest: true), expected)
    }

    @Test("the first element passes immediately, then the first of each interval")
    func first() throws {
        let upstream = stage.hot("-abcdefgh----")
        let expected: Marbles = " -a---b---f---"
        try stage.expect(throttle(upstream, 4, latest: false), expected)
    }

    @Test("an element outside an interval passes immediately")
    func sparse() throws {
        let upstream = stage.hot("a-----b-----c---")
        let expected: Marbles = " a-----b-----c---"
        try stage.expect(throttle(upstream, 4, latest: true), expected)
    }

    @Test("at one instant elements come before the timer: they belong to the interval that ends")
    func elementsFirst() throws {
        for (latest, expected) in [(true, "a---c---d"), (false, "a---b---d")] {
            let marbles = ThrottleMarbles()
            let upstream = marbles.stage.hot("a---(bc)-d----")
            try marbles.stage.expect(marbles.throttle(upstream, 4, latest: latest), try Marbles(expected))
        }
    }

    @Test("of the elements of one instant the first passes, and the latest or the first of the others is held")
    func burst() throws {
        for (latest, expected) in [(true, "a---c"), (false, "a---b")] {
            let marbles = ThrottleMarbles()
            try marbles.stage.expect(
                marbles.throttle(marbles.stage.hot("(abc)----"), 4, latest: latest), try Marbles(expected))
        }
    }

    @Test("a held element is delivered at its time, then the result ends")
    func end() throws {
        for (latest, expected) in [(true, "a---(c|)"), (false, "a---(b|)")] {
            let marbles = ThrottleMarbles()
            try marbles.stage.expect(
                marbles.throttle(marbles.stage.hot("abc|----"), 4, latest: latest), try Marbles(expected))
        }
    }

    @Test("without a held element the end comes immediately")
    func endOfNothing() throws {
        try stage.expect(throttle(stage.hot("a-|----"), 4, latest: true), "a-|")
    }

    @Test("a failure is thrown immediately; a held element is dropped, a passed one is not")
    func failure() throws {
        try stage.expect(throttle(stage.hot("(abx)--"), 4, latest: true), "(ax)")
        let other = ThrottleMarbles()
        try other.stage.expect(other.throttle(other.stage.hot("ab-x---"), 4, latest: false), "a--x")
    }

    @Test("firings of a signal are throttled")
    func signal() throws {
        let signal = stage.signal("(sss)--s-------s|")
        let expected: Marbles = "  o    ---o------o|"
        try stage.expect(throttle(signal, 4, latest: true), expected)
    }

    @Test("with an interval of zero or less each element passes immediately")
    func zero() throws {
        for interval in [0, -3] {
            for latest in [true, false] {
                let marbles = ThrottleMarbles()
                try marbles.stage.expect(
                    marbles.throttle(marbles.stage.hot("a-bcd|"), interval, latest: latest), "a-bcd|")
            }
        }
    }

    @Test("with an interval without bounds there is one element")
    func forEver() throws {
        let sequence = stage.hot("a-b---").throttle(for: .seconds(Int64.max), latest: true, clock: stage.clock)
        try stage.expect(sequence, "a-----")
    }

    @Test("without a waiting next() newer elements replace the held one")
    func slowLatest() throws {
        let upstream = stage.hot(" abcdefghi------")
        let consumer: Marbles = "  ^------^^------"
        let expected: Marbles = "  a------h---i---"
        try stage.expect(throttle(upstream, 4, latest: true), expected, consumer: consumer)
    }

    @Test("without a waiting next() the first held element stays, and newer ones are dropped")
    func slowFirst() throws {
        let upstream = stage.hot(" abcdefghi------")
        let consumer: Marbles = "  ^------^^------"
        let expected: Marbles = "  a------b---i---"
        try stage.expect(throttle(upstream, 4, latest: false), expected, consumer: consumer)
    }

    @Test("an interval begins when its element is taken")
    func slowInterval() throws {
        let upstream = stage.hot(" a---b-cd-------")
        let consumer: Marbles = "  ^-----^^-------"
        let expected: Marbles = "  a-----c---d----"
        try stage.expect(throttle(upstream, 4, latest: true), expected, consumer: consumer)
    }

    @Test("an element that is held at the end waits for the consumer, then the result ends")
    func slowEnd() throws {
        let upstream = stage.hot(" ab|------------")
        let consumer: Marbles = "  ^-------^-^----"
        let expected: Marbles = "  a-------b-|----"
        try stage.expect(throttle(upstream, 4, latest: true), expected, consumer: consumer)
    }

    @Test("a cancelled consumer gets the end, and no timer is left; without a held element there is no timer")
    func cancelled() throws {
        let sleepers = Sleepers(stage.clock)
        let upstream = stage.hot(" a-b----")
        for frame in [1, 3] { stage.at(frame: frame) { sleepers.record() } }
        try stage.expect(throttle(upstream, 5, latest: true), "a---|", consumer: "----!")
        #expect(sleepers.counts == [0, 1])
        #expect(stage.clock.sleeperCount == 0)
    }
}
