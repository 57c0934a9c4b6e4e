import FreshetSignals
import Synchronization
import Testing

@Suite("Observing occurrences")
struct SignalObservationTests {
    private final class OccurrenceRecorder: Sendable {
        private let stored = Mutex<[Occurrence]>([])
        var all: [Occurrence] { stored.withLock { $0 } }
        func add(_ occurrence: Occurrence) { stored.withLock { $0.append(occurrence) } }
    }

    @Test("each occurrence is reported when it happens, with number and detail, also where causes sum them up")
    func each() async {
        let source = SignalSource("file")
        let recorder = OccurrenceRecorder()
        source.fire("before")
        let observation = source.signal.observe(recorder.add)
        var causes = source.signal.causes.makeAsyncIterator()
        source.fire("two")
        source.fire()
        source.fire("four")
        #expect(recorder.all.map(\.number) == [2, 3, 4])
        #expect(recorder.all.map(\.detail) == ["two", nil, "four"])
        #expect(recorder.all.allSatisfy { $0.signal == "file" })
        let cause = await causes.next(isolation: nil)?.first
        #expect(cause?.count == 3 && cause?.first == recorder.all.first && cause?.last == recorder.all.last)
        withExtendedLifetime(observation) {}
    }

    @Test("the observation ends with its object, and a merge that lists a source twice reports once")
    func ends() {
        let (one, two) = (SignalSource("one"), SignalSource("two"))
        let recorder = OccurrenceRecorder()
        do {
            let observation = Signal.merge(one.signal, two.signal, one.signal).observe(recorder.add)
            #expect(one.fire() == 1)
            #expect(two.fire() == 1)
            withExtendedLifetime(observation) {}
        }
        #expect(one.fire() == 0)
        #expect(recorder.all.map(\.signal) == ["one", "two"])
    }
}
