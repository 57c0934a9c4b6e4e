import Testing

@testable import FreshetSignals

@Suite("Which page is loaded when, event by event")
struct PaginatedStateMachineTests {
    typealias Machine = PaginatedStateMachine<Int>

    @Test("the initial pages are loaded, then one at each output, until the last")
    func pages() {
        var machine = Machine(initially: 2, hasSignal: true)
        #expect(machine.start().text == "load first, page 1, attempt 1")
        #expect(machine.delivered(next: 7).text == "load 7, page 2, attempt 1")
        #expect(machine.delivered(next: 8).text == "sleep with 2")
        #expect(machine.output().text == "load 8, page 3, attempt 1")
        #expect(machine.delivered(next: nil).text == "end with 3")
    }

    @Test("without a signal the sequence ends after the initial pages")
    func withoutSignal() {
        var machine = Machine(initially: 1, hasSignal: false)
        _ = machine.start()
        #expect(machine.delivered(next: 1).text == "end with 1")
    }

    @Test("without initial pages the sequence waits for an output")
    func none() {
        for initially in [0, -1, Int.min] {
            var machine = Machine(initially: initially, hasSignal: true)
            #expect(machine.start().text == "sleep with 0")
            #expect(machine.output().text == "load first, page 1, attempt 1")
            var without = Machine(initially: initially, hasSignal: false)
            #expect(without.start().text == "end with 0")
        }
    }

    @Test("a failure of the first page ends the sequence; a later page is retried, and the rest follows")
    func failures() {
        var machine = Machine(initially: .max, hasSignal: true)
        _ = machine.start()
        #expect(machine.failed().text == "fail as load")
        _ = machine.delivered(next: 1)
        #expect(machine.failed().text == "sleep after failure")
        #expect(machine.output().text == "load 1, page 2, attempt 2")
        #expect(machine.failed().text == "sleep after failure")
        #expect(machine.output().text == "load 1, page 2, attempt 3")
        #expect(machine.delivered(next: 2).text == "load 2, page 3, attempt 1")
    }

    @Test("without a signal a later failure ends the sequence")
    func failureWithoutSignal() {
        var machine = Machine(initially: 2, hasSignal: false)
        _ = machine.start()
        _ = machine.delivered(next: 1)
        #expect(machine.failed().text == "fail as load")
    }

    @Test("the signal's end ends the sequence, or fails it after a failed page")
    func signalEnds() {
        var machine = Machine(initially: 1, hasSignal: true)
        _ = machine.start()
        _ = machine.delivered(next: 1)
        #expect(machine.signalEnded().text == "end with 1")
        _ = machine.output()
        _ = machine.failed()
        #expect(machine.signalEnded().text == "fail as load")
    }

    @Test("a repeated cursor is an error with the cursor and its page")
    func repeated() {
        var machine = Machine(initially: .max, hasSignal: false)
        _ = machine.start()
        _ = machine.delivered(next: 5)
        _ = machine.delivered(next: 6)
        #expect(machine.delivered(next: 5).text == "fail: 5 of page 3")
        #expect("\(RepeatedCursorError(cursor: "5", page: 3))".contains("page 3 leads back"))
    }
}

@Suite("Remembered cursors")
struct SeenCursorsTests {
    @Test("a cycle of up to the limit is detected when it closes", arguments: [1, 2, 1_023, 1_024])
    func exact(_ length: Int) {
        var memory = SeenCursors<Int>()
        let seen = (-3_000..<length).filter { !memory.insert($0) }
        #expect(seen.isEmpty)
        let isNew = memory.insert(0)
        #expect(!isNew)
    }

    @Test("a longer cycle is detected after at most three rounds", arguments: [1_025, 5_000, 20_000])
    func long(_ length: Int) throws {
        for lead in [0, 1, 4_000] {
            var memory = SeenCursors<Int>()
            let seen = (-lead..<0).filter { !memory.insert($0) }
            #expect(seen.isEmpty)
            let found = (0..<(3 * length + 2 * lead + 1)).first { !memory.insert($0 % length) }
            #expect(try #require(found) >= length)
        }
    }

    @Test("100,000 different cursors are all new")
    func different() {
        var memory = SeenCursors<Int>()
        let refused = (0..<100_000).filter { !memory.insert($0) }
        #expect(refused.isEmpty)
    }
}

extension PaginatedStateMachine.Action where Cursor == Int {
    fileprivate var text: String {
        switch self {
        case .load(let cursor, let page, let attempt):
            "load \(cursor.map(String.init) ?? "first"), page \(page), attempt \(attempt)"
        case .sleep(let pages): "sleep with \(pages)"
        case .sleepAfterFailure: "sleep after failure"
        case .failAsLoad: "fail as load"
        case .fail(let error): "fail: \(error.cursor) of page \(error.page)"
        case .end(let pages): "end with \(pages)"
        }
    }
}
