import FreshetSignals
import FreshetTestKit
import Testing

@Suite("paginated(by:), as marble diagrams")
struct PaginatedMarbles {
    let stage = MarbleStage()
    let statuses = Statuses()

    /// Pages named `1`, `2`, … up to the last, each of which takes `frames` frames to load.
    ///
    /// - Parameters:
    ///   - errors: Which loads fail, counted from 1 over all pages.
    ///   - repeats: The page whose cursor is the one of the second page.
    func pages(
        by signal: Signal?, initially: Int = 1, last: Int = 100, frames: Int = 2, errors: Set<Int> = [],
        empty: Set<Int> = [], repeats: Int? = nil
    ) -> some AsyncSequence<[Int], any Error> & Sendable {
        let loads = Attempts()
        let load: @Sendable (Int) async throws -> Page<Int, Int> = { [stage] number in
            let load = loads.next()
            try await stage.clock.sleep(for: stage.frames(frames))
            if errors.contains(load) { throw MarbleFailure() }
            let next = number == repeats ? 2 : number + 1
            return Page(empty.contains(number) ? [] : [number], next: number == last ? nil : next)
        }
        return paginated(
            by: signal, initially: initially, first: { try await load(1) }, next: load, onStatus: statuses.add)
    }

    func expect(
        _ sequence: some AsyncSequence<[Int], any Error> & Sendable, _ expected: Marbles, consumer: Marbles = ""
    ) throws {
        try stage.expect(sequence, expected, consumer: consumer) { page in
            page.isEmpty ? "e" : page.map(String.init).joined(separator: " ")
        }
    }

    @Test("the first page is loaded immediately, then one page at each output, until the last")
    func demand() throws {
        let signal = stage.signal("----s---s---")
        let expected: Marbles = "  --1---2---(3|)"
        try expect(pages(by: signal, last: 3), expected)
        #expect(
            statuses.all == [
                "loading 1.1", "dormant 1", "loading 2.1", "dormant 2", "loading 3.1", "ended 3",
            ])
    }

    @Test("the initial pages follow one another")
    func initially() throws {
        let signal = stage.signal("---------s----")
        let expected: Marbles = "  --1-2-3----4--"
        try expect(pages(by: signal, initially: 3), expected)
    }

    @Test("all pages are loaded at the start")
    func all() throws {
        try expect(pages(by: nil, initially: .max, last: 4), "--1-2-3-(4|)")
    }

    @Test("without a signal the sequence ends after the initial pages")
    func withoutSignal() throws {
        try expect(pages(by: nil, initially: 2), "--1-(2|)")
        #expect(statuses.all == ["loading 1.1", "loading 2.1", "ended 2"])
    }

    @Test("outputs between the start of a page and its delivery are dropped")
    func dropped() throws {
        let signal = stage.signal("ss--s(ss)-------s----")
        let expected: Marbles = "  ---1-- -2--------3---"
        try expect(pages(by: signal, frames: 3), expected)
    }

    @Test("any number of outputs in dormancy loads one page")
    func several() throws {
        let signal = stage.signal("----(sss)-----")
        let expected: Marbles = "  --1-  - -2----"
        try expect(pages(by: signal), expected)
    }

    @Test("a page is delivered when the consumer takes it: outputs before that are dropped")
    func taken() throws {
        let signal = stage.signal("-----s---s---")
        let consumer: Marbles = "  ^------^^----"
        let expected: Marbles = "  --1----2---3-"
        try expect(pages(by: signal, initially: 2), expected, consumer: consumer)
    }

    @Test("an output loads a page although no next() is waiting")
    func ahead() throws {
        let signal = stage.signal("----s--------")
        let consumer: Marbles = "  ^-------^----"
        let expected: Marbles = "  --1-----2----"
        try expect(pages(by: signal), expected, consumer: consumer)
    }

    @Test("a failure of the first page fails the sequence")
    func firstFails() throws {
        try expect(pages(by: .never, errors: [1]), "--x")
        #expect(statuses.all == ["loading 1.1"])
    }

    @Test("a later failure is reported, emits nothing, and the next output retries the page")
    func laterFails() throws {
        let signal = stage.signal("----s---s---s--")
        let expected: Marbles = "  --1-------2---3"
        try expect(pages(by: signal, errors: [2]), expected)
        #expect(
            statuses.all == [
                "loading 1.1", "dormant 1", "loading 2.1", "failed 2.1", "loading 2.2", "dormant 2", "loading 3.1",
                "dormant 3",
            ])
    }

    @Test("an output during a load that fails does not retry the page")
    func outputBeforeFailure() throws {
        let signal = stage.signal("----ss----s----")
        let expected: Marbles = "  --1---------2--"
        try expect(pages(by: signal, errors: [2]), expected)
    }

    @Test("if all pages are loaded, the output that retries a page lets the rest follow")
    func allAgain() throws {
        let signal = stage.signal("-------s---------")
        let expected: Marbles = "  --1------2-3-(4|)"
        try expect(pages(by: signal, initially: .max, last: 4, errors: [2]), expected)
    }

    @Test("a later failure without a signal fails the sequence")
    func failsWithoutSignal() throws {
        try expect(pages(by: nil, initially: 3, errors: [3]), "--1-2-x")
        #expect(statuses.all.last == "failed 3.1")
    }

    @Test("when the signal ends, a waiting sequence ends; it fails if its last page failed")
    func signalEnds() throws {
        let signal = stage.signal("----s----|")
        try expect(pages(by: signal), "--1---2--|")
        let other = PaginatedMarbles()
        let ending = other.stage.signal("----s----|")
        try other.expect(other.pages(by: ending, errors: [2]), "--1------x")
    }

    @Test("if the signal ends during a load, the page is delivered first")
    func signalEndsDuringPage() throws {
        let signal = stage.signal("----s|----")
        try expect(pages(by: signal), "--1---(2|)")
    }

    @Test("an empty page with a next one is emitted, and so is an empty last page")
    func empty() throws {
        let signal = stage.signal("----s---s---")
        try expect(pages(by: signal, last: 3, empty: [2, 3]), "--1---e---(e|)")
    }

    @Test("a cursor that was seen before fails the sequence after its page")
    func repeated() throws {
        try expect(pages(by: .never, initially: .max, repeats: 3), "--1-2-(3x)")
    }

    @Test("without initial pages, the first page waits for an output")
    func none() throws {
        for initially in [0, -1] {
            let marbles = PaginatedMarbles()
            let signal = marbles.stage.signal("---s----")
            try marbles.expect(marbles.pages(by: signal, initially: initially), "-----1--")
            #expect(marbles.statuses.all.first == "dormant 0")
            let without = PaginatedMarbles()
            try without.expect(without.pages(by: nil, initially: initially), "|")
        }
    }

    @Test("a cancelled sequence ends, during a load or while dormant, and no failure is reported")
    func cancelled() throws {
        try expect(pages(by: .never), "-|", consumer: "-!")
        #expect(statuses.all == ["loading 1.1"])
        let other = PaginatedMarbles()
        try other.expect(other.pages(by: .never), "--1-|", consumer: "----!")
    }
}

/// The statuses of a `paginated` sequence: `loading PAGE.ATTEMPT` and so on.
final class Statuses: Sendable {
    private let log = Lock<[String]>([])

    var all: [String] { log.withLock { $0 } }

    func add(_ status: PageStatus) {
        let text =
            switch status {
            case .loading(let page, let attempt): "loading \(page).\(attempt)"
            case .dormant(let pages): "dormant \(pages)"
            case .failed(let page, let attempt, _): "failed \(page).\(attempt)"
            case .ended(let pages): "ended \(pages)"
            }
        log.withLock { $0.append(text) }
    }
}
