import FreshetSignals
import FreshetTestKit
import Testing

@Suite("Marble notation")
struct MarbleNotationTests {
    @Test(
        "a diagram is parsed and written back",
        arguments: ["", "-a-b-|", "-(ab|)", "{long name}x", "^--!", "---", "-(a{bc})-1-x"])
    func roundTrip(text: String) throws {
        #expect(try Marbles(text).description == text)
    }

    @Test("frames are counted, spaces are not")
    func frames() {
        let diagram: Marbles = " -a ( b c ) - | -"
        #expect(
            diagram.marks == [
                Marbles.Mark(frame: 1, event: .element("a")), Marbles.Mark(frame: 2, event: .element("b")),
                Marbles.Mark(frame: 2, event: .element("c")), Marbles.Mark(frame: 4, event: .end),
            ])
        #expect(diagram.frames == 6)
        #expect(diagram == "-a(bc)-|", "empty frames at the end are ignored")
        #expect(diagram != "-a(cb)-|")
        #expect(diagram != "-abc-|")
    }

    @Test(
        "an invalid diagram throws an error with position and reason",
        arguments: [
            ("-a#", 2, "no meaning"), ("-(ab", 1, "not closed"), ("(a-b)", 2, "put '-' outside"),
            ("((a))", 1, "cannot contain a group"), ("-{ab", 1, "not closed"), ("{}", 0, "must not be empty"),
            ("a)", 1, "no meaning"),
        ])
    func errors(text: String, offset: Int, reason: String) {
        let error = #expect(throws: MarbleSyntaxError.self) { try Marbles(text) }
        #expect(error?.offset == offset)
        #expect(error?.reason.contains(reason) == true)
        #expect(error?.description.hasSuffix("\n" + String(repeating: " ", count: offset) + "^") == true)
    }

    @Test("a stage that its own actions hold is released when it has played")
    func released() throws {
        weak var released: MarbleStage?
        do {
            let stage = MarbleStage()
            released = stage
            stage.at(frame: 1) { _ = stage.clock.now }
            try stage.expect(stage.signal("-a-|"), "-o-|")
        }
        #expect(released == nil)
    }

    @Test("a mismatch shows both diagrams and where they differ")
    func mismatch() throws {
        let stage = MarbleStage()
        let signal = stage.signal("-a-(aa)-|")
        let error = #expect(throws: MarbleMismatch.self) { try stage.expect(signal, "-o-(ooo)-|") }
        #expect(
            error?.description == """
                the result differs from the diagram
                expected  -o-(ooo)-|
                observed  -o-(oo)-|
                             ^
                """)
    }
}

@Suite("The manual clock and the serial executor")
struct ManualClockTests {
    @Test("sleepers wake at their deadline, in its order, and not before")
    func order() throws {
        let executor = SerialTestExecutor()
        let clock = ManualClock()
        let log = Log()
        let tasks = [3, 1, 2, 1].map { seconds in
            Task(executorPreference: executor) {
                try await clock.sleep(for: .seconds(seconds))
                log.add("\(seconds) at \(clock.elapsed.components.seconds)")
            }
        }
        try executor.runUntilIdle()
        #expect(clock.sleeperCount == 4)
        try clock.advance(by: .milliseconds(999), draining: executor)
        #expect(log.entries.isEmpty)
        #expect(clock.nextDeadline == clock.start.advanced(by: .seconds(1)))
        try clock.advance(by: .seconds(5), draining: executor)
        #expect(log.entries == ["1 at 1", "1 at 1", "2 at 2", "3 at 3"])
        #expect(clock.elapsed == .milliseconds(5_999))
        for task in tasks { try executor.run { try await task.value } }
    }

    @Test("a sleep that begins during an advance is due during it, in both ways to advance")
    func onTheWay() throws {
        let executor = SerialTestExecutor()
        let clock = ManualClock()
        let log = Log()
        let ticker = Task(executorPreference: executor) {
            while true {
                try await clock.sleep(for: .seconds(1))
                log.add("\(clock.elapsed.components.seconds)")
            }
        }
        try clock.advance(by: .seconds(2), draining: executor)
        #expect(log.entries == ["1", "2"])
        try executor.run { await clock.advance(by: .seconds(2), awaitingIdle: executor) }
        #expect(log.entries == ["1", "2", "3", "4"])
        ticker.cancel()
        try executor.runUntilIdle()
        #expect(clock.sleeperCount == 0)
    }

    @Test("a sleep until a past deadline returns immediately; a cancelled sleep throws, whenever it was cancelled")
    func pastAndCancelled() throws {
        let executor = SerialTestExecutor()
        let clock = ManualClock()
        try executor.run { try await clock.sleep(until: clock.now) }
        let tasks = (1...2).map { _ in
            Task(executorPreference: executor) { try await clock.sleep(for: .seconds(1)) }
        }
        tasks[0].cancel()
        try executor.runUntilIdle()
        #expect(clock.sleeperCount == 1)
        tasks[1].cancel()
        #expect(clock.sleeperCount == 0)
        for task in tasks {
            #expect(throws: CancellationError.self) { try executor.run { try await task.value } }
        }
    }

    @Test("a body that waits for nothing throws an error, and so do tasks that never stop")
    func stallAndLivelock() throws {
        let executor = SerialTestExecutor()
        #expect(throws: StallError.self) {
            try executor.run { for await _ in Signal.never {} }
        }
        let restless = Task(executorPreference: executor) {
            while !Task.isCancelled { await Task.yield() }
        }
        #expect(throws: LivelockError.self) { try executor.runUntilIdle(jobLimit: 100) }
        restless.cancel()
        try executor.runUntilIdle()
    }
}
