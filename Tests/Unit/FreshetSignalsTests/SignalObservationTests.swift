import FreshetSignals
import Synchronization
import Testing

@Suite("Observing occurrences")
struct SignalObservationTests {
    private final class Notes: Sendable {
        private let stored = Mutex<[Occurrence]>([])
        var all: [Occurrence] { stored.withLock { $0 } }
        func add(_ occurrence: Occurrence) { stored.withLock { $0.append(occurrence) } }
    }

    @Test("each occurrence is told when it happens, with its number and detail, also where causes sum them up")
    func each() async {
        let source = SignalSource("file")
        let notes = Notes()
        source.fire("before")
        let observation = source.signal.observe(notes.add)
        var causes = source.signal.causes.makeAsyncIterator()
        source.fire("two")
        source.fire()
        source.fire("four")
        #expect(notes.all.map(\.number) == [2, 3, 4])
        #expect(notes.all.map(\.detail) == ["two", nil, "four"])
        #expect(notes.all.allSatisfy { $0.signal == "file" })
        let cause = await causes.next(isolation: nil)?.first
        #expect(cause?.count == 3 && cause?.first == notes.all.first && cause?.last == notes.all.last)
        withExtendedLifetime(observation) {}
    }

    @Test("it ends with the object, and a merge that lists a source twice tells once")
    func ends() {
        let (one, two) = (SignalSource("one"), SignalSource("two"))
        let notes = Notes()
        do {
            let observation = Signal.merge(one.signal, two.signal, one.signal).observe(notes.add)
            #expect(one.fire() == 1)
            #expect(two.fire() == 1)
            withExtendedLifetime(observation) {}
        }
        #expect(one.fire() == 0)
        #expect(notes.all.map(\.signal) == ["one", "two"])
    }
}
