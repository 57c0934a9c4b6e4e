import AsyncAlgorithms
import FreshetSignals
import OpenCombine

/// The time from a firing, which cancels the run in progress, to the first element of the next run.
func restart(_ bench: Bench) {
    bench.table(
        "restart", "publishAndRepeat: firing → first element of the new run; the old run has to be cancelled",
        [
            restartedOnStage("Freshet, on one thread"),
            restartedOnPool("Freshet, on the global executor"),
            switched("OpenCombine, map and switchToLatest, which delivers at once"),
        ],
        missing: ["swift-async-algorithms, flatMapLatest: it may hang, see the last table"])
}

/// The elements of a run: one element, then nothing until the run is cancelled.
func oneThenNothing() -> AsyncStream<Int> {
    AsyncStream { $0.yield(1) }
}

private func restartedOnStage(_ name: String) -> Subject {
    let source = SignalSource("s")
    let stage = Stage()
    let counter = Counter()
    let task = stage.startConsumer(to: publish(onOutputFrom: source.signal) { oneThenNothing() }, counting: counter)
    return received(name, counter, 1, stage, [task]) { source.fire() }
}

private func restartedOnPool(_ name: String) -> Subject {
    let source = SignalSource("s")
    var iterator = publish(onOutputFrom: source.signal) { oneThenNothing() }.makeAsyncIterator()
    let hasNext = Held { await iterator.next(isolation: nil) != nil }
    let counter = Counter()
    var subject = Subject(
        name,
        onPool: { operations in
            for _ in 0..<operations {
                source.fire()
                if await hasNext.value() { counter.add() }
            }
        })
    subject.delivered = Delivered(counter: counter, perOperation: 1)
    return subject
}

private func switched(_ name: String) -> Subject {
    let sender = PassthroughSubject<Void, Never>()
    let counter = Counter()
    let cancellable =
        sender
        .map { Just(1).append(Empty<Int, Never>(completeImmediately: false)) }
        .switchToLatest()
        .sink { _ in counter.add() }
    var subject = Subject(name) { operations in
        withExtendedLifetime(cancellable) {
            for _ in 0..<operations { sender.send() }
        }
    }
    subject.delivered = Delivered(counter: counter, perOperation: 1)
    return subject
}
