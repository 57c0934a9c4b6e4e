import FreshetSignals
import Synchronization
import Testing

@testable import FreshetSystemSignals

@Suite("What observers of a network target get")
struct NetworkWatchTests {
    private final class Changes: Sendable {
        private let all = Mutex<[(fact: NetworkFact, cause: Cause?)]>([])
        func add(_ fact: NetworkFact, _ cause: Cause?) { all.withLock { $0.append((fact, cause)) } }
        var epochs: [UInt64] { all.withLock { $0.map(\.fact.epoch) } }
        var counts: [Int?] { all.withLock { $0.map(\.cause?.count) } }
        var details: [String?] { all.withLock { $0.map(\.cause?.last.detail) } }
    }

    private let source = SignalSource("network")

    private func fact(_ epoch: UInt64, isReachable: Bool = true) -> NetworkFact {
        NetworkFact(.elsewhere, isReachable: isReachable, changedAt: .now, epoch: epoch)
    }

    private func watch() -> NetworkWatch { NetworkWatch(.elsewhere, fact(0), source.signal) {} }

    @Test("the fact of a change and the firing because of it come together; a loss has no firing")
    func together() {
        let watch = watch()
        let changes = Changes()
        let observation = watch.observe(changes.add)
        watch.set(fact(1))
        source.fire("reachable")
        #expect(changes.epochs == [])
        watch.publish()
        watch.set(fact(1, isReachable: false))
        watch.publish()
        #expect(changes.epochs == [1, 1])
        #expect(changes.counts == [1, nil])
        #expect(changes.details == ["reachable", nil])
        withExtendedLifetime(observation) {}
    }

    @Test("two firings for one change are one cause with a count")
    func twice() {
        let watch = watch()
        let changes = Changes()
        let observation = watch.observe(changes.add)
        watch.set(fact(1))
        source.fire("path changed")
        source.fire("fired by hand")
        watch.publish()
        #expect(changes.counts == [2])
        #expect(changes.details == ["fired by hand"])
        withExtendedLifetime(observation) {}
    }

    @Test("each observer gets all changes until it is released")
    func several() {
        let watch = watch()
        let (first, second) = (Changes(), Changes())
        var observation: NetworkObservation? = watch.observe(first.add)
        let other = watch.observe(second.add)
        watch.set(fact(1))
        watch.publish()
        withExtendedLifetime(observation) {}
        observation = nil
        watch.set(fact(2))
        watch.publish()
        #expect(first.epochs == [1])
        #expect(second.epochs == [1, 2])
        withExtendedLifetime(other) {}
    }
}
