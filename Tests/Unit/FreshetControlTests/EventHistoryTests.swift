import TestSupport
import Testing

@testable import FreshetControl

@Suite("The history of events") struct EventHistoryTests {
    private static let texts = ["", "jwks", "default route via enp3s0", "J\u{E4}zz", "Ja\u{308}zz", "\u{0}\u{1F600}\n"]
    private static let numbers: [Int64] = [.min, -1, 0, 1, 63, 64, 127, 128, 1_764_316_922_000_000, .max]

    /// An event with a random part of all fields.
    private func event(_ random: inout SeededGenerator) -> ControlEvent {
        func maybe<Value>(_ values: [Value]) -> Value? {
            Bool.random(using: &random) ? values.randomElement(using: &random) : nil
        }
        func number() -> Int64 { Self.numbers.randomElement(using: &random) ?? 0 }
        var event = ControlEvent(
            at: number(), kind: ControlEvent.Kind.allCases.randomElement(using: &random) ?? .signal,
            pipeline: maybe(Self.texts))
        event.signal = maybe(Self.texts)
        event.source = maybe(Self.texts)
        event.number = maybe(Self.numbers)
        event.detail = maybe(Self.texts + ["the copy is older than max-age"])
        event.state = maybe(PipelineState.allCases)
        event.waitingFor = maybe(WaitingReason.allCases)
        event.waitingUntil = maybe(Self.numbers)
        guard Bool.random(using: &random) else { return event }
        var run = RunStatus(number: number(), started: number())
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            run.causes.append(
                CauseStatus(
                    signal: Self.texts.randomElement(using: &random) ?? "", number: maybe(Self.numbers),
                    count: number(),
                    first: number(), last: number(), detail: maybe(Self.texts)))
        }
        run.durationUSec = maybe(Self.numbers)
        run.outcome = maybe(RunOutcome.allCases)
        run.generation = maybe(Self.numbers)
        run.failure = maybe(Self.texts)
        run.failureKind = maybe(Self.texts)
        run.httpStatus = maybe(Self.numbers)
        run.retryAfterUSec = maybe(Self.numbers)
        run.requests = maybe(Self.numbers)
        run.bytes = maybe(Self.numbers)
        run.mirror = maybe(Self.texts)
        run.publicFailure = maybe(Self.texts)
        event.run = run
        return event
    }

    /// All texts with their bytes: `==` accepts another normalization.
    private func bytes(_ event: ControlEvent) -> [[UInt8]] {
        let run = event.run
        let texts =
            [event.pipeline, event.signal, event.source, event.detail, run?.failure, run?.failureKind, run?.mirror]
            + [run?.publicFailure] + (run?.causes.flatMap { [$0.signal, $0.detail] } ?? [])
        return texts.map { Array(($0 ?? "-").utf8) }
    }

    @Test("an event in the history has all of its fields, except the generation")
    func fields() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<5_000 {
            let event = event(&random)
            var writer = FieldWriter()
            event.write(to: &writer)
            var reader = FieldReader(writer.bytes)
            let copy = ControlEvent(from: &reader)
            #expect(copy == event && bytes(copy) == bytes(event) && reader.position == writer.bytes.count)
        }
    }

    @Test("a new field of an event has to be written to the history, too")
    func newFields() {
        var event = ControlEvent.state(.loaded, of: "jwks", at: 1)
        event.run = RunStatus(number: 1, started: 1)
        #expect(Mirror(reflecting: event).children.count == 12)
        #expect(Mirror(reflecting: RunStatus(number: 1, started: 1)).children.count == 14)
        #expect(Mirror(reflecting: CauseStatus(signal: "timer", first: 1, last: 1)).children.count == 6)
    }

    @Test("the history leaves out the generation, whose number the run has")
    func generation() {
        var history = EventHistory(limit: 2)
        let run = RunStatus(number: 1, started: 1, outcome: .changed, generation: 4)
        let generation = GenerationStatus(number: 4, size: 1, digest: "d", committedAt: 1, path: "/jwks")
        history.append(.runEnded(run, of: "jwks", generation: generation, at: 3))
        #expect(history.page(from: 0, limit: 1).events == [.runEnded(run, of: "jwks", at: 3)])
    }

    @Test("over many blocks, also with events longer than a block, the history has the last events")
    func blocks() {
        var random = SeededGenerator(seed: 11)
        var history = EventHistory(limit: 1_500)
        var all: [ControlEvent] = []
        for number in 0..<9_000 {
            var event = event(&random)
            // Such events are left out in some cases.
            if event.kind == .state { event.kind = .signal }
            if number.isMultiple(of: 700) {
                event.detail = String(repeating: "x", count: EventHistory.blockBytes + number)
            }
            history.append(event)
            all.append(event)
            #expect(history.numbers == max(0, all.count - history.limit)..<all.count)
            guard number.isMultiple(of: 97) else { continue }
            #expect(history.oldest == all[history.numbers.lowerBound].at)
            var read: [ControlEvent] = []
            var next = 0
            repeat {
                let page = history.page(from: next, limit: Int.random(in: 1...400, using: &random))
                read += page.events
                next = page.next
            } while next < history.numbers.upperBound
            #expect(read == Array(all[history.numbers]))
        }
    }
}
