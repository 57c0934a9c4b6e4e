import AsyncAlgorithms
import Dispatch
import FreshetSignals
import OpenCombine
import OpenCombineDispatch

/// Elements without a pause.
struct Burst: AsyncSequence, Sendable {
    typealias Element = Int
    typealias Failure = Never
    let count: Int

    struct AsyncIterator: AsyncIteratorProtocol {
        var left: Int

        mutating func next(isolation: isolated (any Actor)? = #isolation) async -> Int? {
            guard left > 0 else { return nil }
            left -= 1
            return left
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(left: count) }
}

/// A burst of elements with an end, of which one is delivered at that end.
func debounceBurst(_ bench: Bench) {
    bench.table(
        "debounce", "debounce of one second under a burst that ends: for each element, on the global executor",
        [
            burst("the burst alone") { $0 },
            burst("Freshet", perRun: 1) { $0.debounce(for: .seconds(1), atMost: nil) },
            burst("Freshet, atMost 5 s", perRun: 1) { $0.debounce(for: .seconds(1), atMost: .seconds(5)) },
            burst("swift-async-algorithms", perRun: 1) { $0.debounce(for: .seconds(1)) },
            dispatched("OpenCombine, on a queue of Dispatch"),
        ],
        missing: [
            "swift-async-algorithms and OpenCombine have no longest wait: under a burst that does not end they never "
                + "deliver"
        ])
}

private func burst<S: AsyncSequence & Sendable>(
    _ name: String, perRun: Int? = nil, _ debounce: @escaping @Sendable (Burst) -> S
) -> Subject {
    let counter = Counter()
    var subject = Subject(
        name,
        onPool: { operations in
            var iterator = debounce(Burst(count: operations)).makeAsyncIterator()
            while (try? await iterator.next(isolation: nil)) != nil { counter.add() }
        })
    subject.delivered = Delivered(counter: counter, perOperation: perRun == nil ? 1 : 0, perRun: perRun ?? 0)
    return subject
}

private func dispatched(_ name: String) -> Subject {
    let queue = DispatchQueue(label: "burst")
    return Subject(name) { operations in
        let sender = PassthroughSubject<Int, Never>()
        let cancellable = sender.debounce(for: .seconds(1), scheduler: queue.ocombine).sink { _ in }
        for number in 0..<operations { sender.send(number) }
        // Its work on the queue is not measured here.
        queue.sync {}
        cancellable.cancel()
    }
}
