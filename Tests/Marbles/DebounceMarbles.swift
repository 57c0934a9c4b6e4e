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

    @Test("the last element is delivered when it has been quiet")
    func trailing() throws {
        let upstream = stage.hot(" a-bc-------d-------")
        let expected: Marbles = "  ------c-------d----"
        try stage.expect(debounce(upstream, 3), expected)
    }

    @Test("in calm the element that begins a storm passes at once, if it leads")
    func leading() throws {
        let upstream = stage.hot(" a-bc-------d-------")
        let expected: Marbles = "  a-----c----d-------"
        try stage.expect(debounce(upstream, 3, leading: true), expected)
    }

    @Test("a storm of one leading element delivers nothing more")
    func lonely() throws {
        let upstream = stage.hot(" a------b----")
        try stage.expect(debounce(upstream, 3, leading: true), "a------b----")
    }

    @Test("after what was held is delivered it is calm")
    func calmAgain() throws {
        let upstream = stage.hot(" ab---c---")
        let expected: Marbles = "  a---bc---"
        try stage.expect(debounce(upstream, 3, leading: true), expected)
    }

    @Test("it is calm when the quiet has passed, and not at that instant")
    func calmBegins() throws {
        let upstream = stage.hot(" a--b---c----")
        let expected: Marbles = "  a-----bc----"
        try stage.expect(debounce(upstream, 3, leading: true), expected)
    }

    @Test("a storm without an end is interrupted by atMost after the first that was held, and goes on")
    func atMost() throws {
        let upstream = stage.hot(" abcdefgh--------")
        let expected: Marbles = "  -----f----h-----"
        try stage.expect(debounce(upstream, 3, atMost: 5), expected)
    }

    @Test("after atMost it is still a storm: nothing passes at once")
    func atMostLeading() throws {
        let upstream = stage.hot(" abcdefghi-------")
        // b is the first that is held: after 4 frames f is the last; then g is the first.
        let expected: Marbles = "  a----f----i-----"
        try stage.expect(debounce(upstream, 3, atMost: 4, leading: true), expected)
    }

    @Test("atMost that is shorter than the quiet holds each for no longer")
    func shortAtMost() throws {
        let upstream = stage.hot(" a----b------")
        let expected: Marbles = "  --a----b----"
        try stage.expect(debounce(upstream, 4, atMost: 2), expected)
    }

    @Test("at one instant elements come before the timer: the quiet begins anew")
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

    @Test("elements of one instant: the first passes, the last is held")
    func burst() throws {
        let upstream = stage.hot(" (abc)------")
        try stage.expect(debounce(upstream, 3, leading: true), "a--c----")
    }

    @Test("at the end what is held is delivered at once, then the end")
    func end() throws {
        let upstream = stage.hot("            ab-|---")
        try stage.expect(debounce(upstream, 3), "   ---(b|)")
        let other = DebounceMarbles()
        try other.stage.expect(other.debounce(other.stage.hot("a----|"), 3, leading: true), "a----|")
    }

    @Test("a failure comes at once; what is held is dropped, what has passed is not")
    func failure() throws {
        let upstream = stage.hot("                            ab-x---")
        try stage.expect(debounce(upstream, 3), "                   ---x---")
        let other = DebounceMarbles()
        let burst = other.debounce(other.stage.hot("(abx)"), 3, leading: true)
        try other.stage.expect(burst, "(ax)")
    }

    @Test("the firings of a signal are one")
    func signal() throws {
        let signal = stage.signal("s-(ss)------s|   ")
        let expected: Marbles = "  --- --o----(o|)"
        try stage.expect(debounce(signal, 3), expected)
    }

    @Test("the firings of a signal in a storm: one at once, one afterwards")
    func leadingSignal() throws {
        let signal = stage.signal("s-(ss)------s-----|")
        let expected: Marbles = "  o- ---o---o-----|"
        try stage.expect(debounce(signal, 3, leading: true), expected)
    }

    @Test("no wait: each is due at once, before the end of its instant")
    func zero() throws {
        for (quiet, atMost) in [(0, nil), (-5, nil), (3, 0), (3, -1), (-1, -1)] as [(Int, Int?)] {
            let marbles = DebounceMarbles()
            let upstream = marbles.stage.hot("a-b-c-|")
            try marbles.stage.expect(marbles.debounce(upstream, quiet, atMost: atMost), "a-b-c-|")
        }
    }

    @Test("no wait, and a slow consumer: it gets the newest")
    func zeroAndSlow() throws {
        let upstream = stage.hot(" a-bcd---e-|  ")
        let consumer: Marbles = "  ^----^------^^"
        let expected: Marbles = "  a----d------e|"
        try stage.expect(debounce(upstream, 0), expected, consumer: consumer)
    }

    @Test("a quiet time beyond all measure lasts until the end")
    func forEver() throws {
        let upstream = stage.hot("a-b---|")
        let sequence = upstream.debounce(for: .seconds(Int64.max), atMost: .seconds(Int64.max), clock: stage.clock)
        try stage.expect(sequence, "------(b|)")
    }

    @Test("while nobody asks a newer element takes the place of what is held, due or not")
    func slow() throws {
        let upstream = stage.hot(" a-----b--------")
        // The first answer is a; b is asked for before it has been quiet.
        let consumer: Marbles = "  ^^-----^-------"
        let expected: Marbles = "  ---a-----b-----"
        try stage.expect(debounce(upstream, 3), expected, consumer: consumer)
        let late = DebounceMarbles()
        let sequence = late.debounce(late.stage.hot("(aa)b----c-----"), 3, leading: true)
        // b was due at frame 4; c has come when it is asked for, and passes, as it began a storm.
        try late.stage.expect(sequence, "            a   ------c---", consumer: "^   ------^---")
    }

    @Test("what is due waits for the consumer")
    func due() throws {
        let upstream = stage.hot(" a--------------")
        let consumer: Marbles = "  ^------^-------"
        let expected: Marbles = "  ---a-----------"
        try stage.expect(debounce(upstream, 3), expected, consumer: consumer)
        let late = DebounceMarbles()
        let sequence = late.debounce(late.stage.hot("ab-----"), 3, leading: true)
        try late.stage.expect(sequence, "a------b", consumer: "^------^")
    }

    @Test("in a storm that nobody asks in, atMost is counted from the first that was held")
    func slowInStorm() throws {
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

    @Test("in calm there is no timer")
    func calm() throws {
        let signal = stage.signal("s----")
        let sleepers = Sleepers(stage.clock)
        stage.at(frame: 1) { sleepers.note() }
        stage.at(frame: 4) { sleepers.note() }
        try stage.expect(debounce(signal, 3, leading: true), "o---")
        #expect(sleepers.counts == [0, 0])
    }
}

/// How many tasks slept at some moments.
final class Sleepers: Sendable {
    private let clock: ManualClock
    private let noted = Lock<[Int]>([])

    init(_ clock: ManualClock) {
        self.clock = clock
    }

    var counts: [Int] { noted.withLock { $0 } }

    func note() {
        noted.withLock { $0.append(clock.sleeperCount) }
    }
}
