import Testing

@testable import FreshetSignals

@Suite("A burst and its last instant")
struct DebouncerTests {
    private static let start = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant { Self.start.advanced(by: .seconds(seconds)) }

    /// The second element comes this time after the first one; the timer of that instant fires before it or not at all.
    struct Row: Sendable {
        var gap: Double
        var isElapsed: Bool
        var passes: Bool
    }

    /// The quiet period is two seconds.
    static let rows = [
        Row(gap: 0, isElapsed: false, passes: false),
        Row(gap: 1.999, isElapsed: false, passes: false),
        Row(gap: 1.999, isElapsed: true, passes: false),
        // At the same instant elements come before timers.
        Row(gap: 2, isElapsed: false, passes: false),
        Row(gap: 2, isElapsed: true, passes: true),
        Row(gap: 2.001, isElapsed: false, passes: true),
        Row(gap: 2.001, isElapsed: true, passes: true),
    ]

    @Test("an element passes after the burst, and after the timer of its last instant", arguments: rows)
    func edge(_ row: Row) {
        var debouncer = Debouncer<ContinuousClock.Instant>(quiet: .seconds(2), atMost: .seconds(10))
        #expect(debouncer.receive(at: at(0)) == true)
        if row.isElapsed { #expect(debouncer.elapse(at: at(row.gap)) == false, "nothing is held") }
        #expect(debouncer.receive(at: at(row.gap)) == row.passes)
        #expect((debouncer.deliversAt == nil) == row.passes)
    }

    @Test("an operator has the same edge", arguments: rows)
    func operators(_ row: Row) {
        var rule = DebounceRule<ContinuousClock.Instant>(quiet: .seconds(2), atMost: .seconds(10), leading: true)
        #expect(rule.arrival(at: at(0), isHolding: false) == .pass)
        // The delivery is the timer's, or that of the first element.
        rule.delivered(at: at(row.isElapsed ? row.gap : 0))
        let due = at(row.gap + 2)
        #expect(rule.arrival(at: at(row.gap), isHolding: false) == (row.passes ? .pass : .hold(until: due)))
    }

    @Test("held elements pass at the last instant of the burst, or after the longest time, and the burst continues")
    func delivery() {
        var debouncer = Debouncer<ContinuousClock.Instant>(quiet: .seconds(2), atMost: .seconds(3))
        #expect(debouncer.receive(at: at(0)) == true)
        for second in [1.0, 2, 3] { #expect(debouncer.receive(at: at(second)) == false) }
        #expect(debouncer.deliversAt == at(4))
        #expect(!debouncer.elapse(at: at(3.999)) && debouncer.elapse(at: at(4)) && debouncer.isBurst(at: at(4)))
        #expect(!debouncer.receive(at: at(4)) && debouncer.deliversAt == at(6))
        #expect(debouncer.elapse(at: at(6)) && !debouncer.isBurst(at: at(6)))
    }

    @Test("without a quiet period every element passes")
    func zero() {
        var debouncer = Debouncer<ContinuousClock.Instant>(quiet: .zero, atMost: .seconds(3))
        for _ in 0..<3 { #expect(debouncer.receive(at: at(0)) == true) }
        #expect(debouncer.deliversAt == nil)
    }
}
