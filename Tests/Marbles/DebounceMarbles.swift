import FreshetSignals
import FreshetTestKit
import Testing

@Suite("debounce, as marble diagrams")
struct DebounceMarbles {
    let stage = MarbleStage()

    /// `debounce` with times in frames.
    func debounce<S: AsyncSequence & Sendable>(
        _ upstream: S, _ quiet: Int, atMost: Int? = nil, leading: Bool = false
    ) -> some AsyncSequence<S.Element, S.Failure> & Sendable where S.Element: Sendable {
        upstream.debounce(
            for: stage.frames(quiet), atMost: atMost.map { stage.frames($0) }, leading: leading, clock: stage.clock)
    }

    @Test("the last element is delivered when a quiet period has passed")
    func trailing() throws {
        let upstream = stage.hot(" a-bc-------d-------")
        let expected: Marbles = "  ------c-------d----"
        try stage.expect(debounce(upstream, 3), expected)
    }

    @Test("with leading, the first element of a burst passes immediately")
    func leading() throws {
        let upstream = stage.hot(" a-bc-------d-------")
        let expected: Marbles = "  a-----c----d-------"
        try stage.expect(debounce(upstream, 3, leading: true), expected)
    }

    @Test("a burst of one leading element delivers nothing more")
    func lonely() throws {
        let upstream = stage.hot(" a------b----")
        try stage.expect(debounce(upstream, 3, leading: true), "a------b----")
    }

    @Test("after the held element was delivered, the burst has ended")
    func quietAgain() throws {
        let upstream = stage.hot(" ab---c---")
        let expected: Marbles = "  a---bc---"
        try stage.expect(debounce(upstream, 3, leading: true), expected)
    }

    @Test("the burst ends after the quiet period, not at its last instant")
    func quietBegins() throws {
        let upstream = stage.hot(" a--b---c----")
        let expected: Marbles = "  a-----bc----"
        try stage.expect(debounce(upstream, 3, leading: true), expected)
    }

    @Test("an endless burst is delivered atMost after the first held element, and continues")
    func atMost() throws {
        let upstream = stage.hot(" abcdefgh--------")
        let expected: Marbles = "  -----f----h-----"
        try stage.expect(debounce(upstream, 3, atMost: 5), expected)
    }

    @Test("after atMost the burst continues: no element passes immediately")
    func atMostLeading() throws {
        let upstream = stage.hot(" abcdefghi-------")
        // b is the first held element: after 4 frames f is the last; then g is the first.
        let expected: Marbles = "  a----f----i-----"
        try stage.expect(debounce(upstream, 3, atMost: 4, leading: true), expected)
    }

    @Test("an atMost that is shorter than the quiet period limits the delay")
    func shortAtMost() throws {
        let upstream = stage.hot(" a----b------")
        let expected: Marbles = "  --a----b----"
        try stage.expect(debounce(upstream, 4, atMost: 2), expected)
    }

    @Test("at one instant elements come before the timer: the quiet period starts again")
    func elementsFirst() throws {
        let upstream = stage.hot(" a--b------")
        let expected: Marbles = "  ------b---"
        try stage.expect(debounce(upstream, 3), expected)
    }

    @Test("at one instant elements come before the timer of atMost: the last of them is delivered")
    func elementsBeforeAtMost() throws {
        let upstream = stage.hot(" a-b-(cd)------")
        let expected: Marbles = "  ----d----------"
        try stage.expect(debounce(upstream, 3, atMost: 4), expected)
    }

    @Test("of the elements of one instant the first passes, and the last is held")
    func burst() throws {
        let upstream = stage.hot(" (abc)------")
        try stage.expect(debounce(upstream, 3, leading: true), "a--c----")
    }

    @Test("at the end a held element is delivered immediately, then the result ends")
    func end() throws {
        let upstream = stage.hot("            ab-|---")
        try stage.expect(debounce(upstream, 3), "   ---(b|)")
        let other = DebounceMarbles()
        try other.stage.expect(other.debounce(other.stage.hot("a----|"), 3, leading: true), "a----|")
    }

    @Test("a failure is thrown immediately; a held element is dropped, a passed one is not")
    func failure() throws {
        let upstream = stage.hot("                            ab-x---")
        try stage.expect(debounce(upstream, 3), "                   ---x---")
        let other = DebounceMarbles()
        let burst = other.debounce(other.stage.hot("(abx)"), 3, leading: true)
        try other.stage.expect(burst, "(ax)")
    }

    @Test("the firings of a burst are delivered as one")
    func signal() throws {
        let signal = stage.signal("s-(ss)------s|   ")
        let expected: Marbles = "  --- --o----(o|)"
        try stage.expect(debounce(signal, 3), expected)
    }

    @Test("with leading, a burst of a signal is one firing immediately and one afterwards")
    func leadingSignal() throws {
        let signal = stage.signal("s-(ss)------s-----|")
        let expected: Marbles = "  o- ---o---o-----|"
        try stage.expect(debounce(signal, 3, leading: true), expected)
    }

    @Test("with a duration of zero each element is delivered immediately, before the end of its instant")
    func zero() throws {
        for (quiet, atMost) in [(0, nil), (-5, nil), (3, 0), (3, -1), (-1, -1)] as [(Int, Int?)] {
            let marbles = DebounceMarbles()
            let upstream = marbles.stage.hot("a-b-c-|")
            try marbles.stage.expect(marbles.debounce(upstream, quiet, atMost: atMost), "a-b-c-|")
        }
    }

    @Test("with a duration of zero a slow consumer gets the newest element")
    func zeroAndSlow() throws {
        let upstream = stage.hot(" a-bcd---e-|  ")
        let consumer: Marbles = "  ^----^------^^"
        let expected: Marbles = "  a----d------e|"
        try stage.expect(debounce(upstream, 0), expected, consumer: consumer)
    }

    @Test("a quiet period without bounds lasts until the end")
    func forEver() throws {
        let upstream = stage.hot("a-b---|")
        let sequence = upstream.debounce(for: .seconds(Int64.max), atMost: .seconds(Int64.max), clock: stage.clock)
        try stage.expect(sequence, "------(b|)")
    }

    @Test("without a waiting next() a newer element replaces the held one, due or not")
    func slow() throws {
        let upstream = stage.hot(" a-----b--------")
        // The first call gets a; the second call comes before the quiet period has passed.
        let consumer: Marbles = "  ^^-----^-------"
        let expected: Marbles = "  ---a-----b-----"
        try stage.expect(debounce(upstream, 3), expected, consumer: consumer)
        let late = DebounceMarbles()
        let sequence = late.debounce(late.stage.hot("(aa)b----c-----"), 3, leading: true)
        // b was due at frame 4; c has arrived when it is requested, and passes, as it began a burst.
        try late.stage.expect(sequence, "            a   ------c---", consumer: "^   ------^---")
    }

    @Test("a due element waits for the consumer")
    func due() throws {
        let upstream = stage.hot(" a--------------")
        let consumer: Marbles = "  ^------^-------"
        let expected: Marbles = "  ---a-----------"
        try stage.expect(debounce(upstream, 3), expected, consumer: consumer)
        let late = DebounceMarbles()
        let sequence = late.debounce(late.stage.hot("ab-----"), 3, leading: true)
        try late.stage.expect(sequence, "a------b", consumer: "^------^")
    }

    @Test("during a burst without a waiting next(), atMost counts from the first held element")
    func slowInBurst() throws {
        let upstream = stage.hot(" (aa)bcdefghij---")
        let consumer: Marbles = "  ^   ------^-----"
        let expected: Marbles = "  a   ------h-----"
        try stage.expect(debounce(upstream, 3, atMost: 4, leading: true), expected, consumer: consumer)
    }

    @Test("a cancelled consumer gets the end, and no timer is left")
    func cancelled() throws {
        let upstream = stage.hot(" a-------")
        let consumer: Marbles = "  -!-"
        try stage.expect(debounce(upstream, 3), "-|-", consumer: consumer)
        #expect(stage.clock.sleeperCount == 0)
    }

    @Test("in a quiet period there is no timer")
    func quiet() throws {
        let signal = stage.signal("s----")
        let sleepers = Sleepers(stage.clock)
        stage.at(frame: 1) { sleepers.record() }
        stage.at(frame: 4) { sleepers.record() }
        try stage.expect(debounce(signal, 3, leading: true), "o---")
        #expect(sleepers.counts == [0, 0])
    }
}

/// The numbers of sleeping tasks at some moments.
final class Sleepers: Sendable {
    private let clock: ManualClock
    private let recorded = Lock<[Int]>([])

    init(_ clock: ManualClock) {
        self.clock = clock
    }

    var counts: [Int] { recorded.withLock { $0 } }

    func record() {
        recorded.withLock { $0.append(clock.sleeperCount) }
    }
}
