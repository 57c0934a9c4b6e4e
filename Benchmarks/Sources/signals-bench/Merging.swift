import AsyncAlgorithms
import FreshetSignals
import OpenCombine

/// The time from firing one source of a merge until its only subscriber has received it and waits again.
func mergeAndDeliver(_ bench: Bench) {
    bench.table(
        "merge", "merge: firing → delivery, one task that waits, on one thread",
        [
            mergedSignals("Freshet, a signal alone", count: 1),
            mergedSignals("Freshet, 3 signals", count: 3),
            mergedSignals("Freshet, 1,000 signals", count: 1_000),
            mergedValues("Freshet, 3 AsyncStreams", count: 3),
            mergedValues("Freshet, 1,000 AsyncStreams", count: 1_000),
            flattened("OpenCombine, 3 by flatMap, which delivers at once", count: 3),
            flattened("OpenCombine, 1,000 by flatMap, which delivers at once", count: 1_000),
        ],
        missing: ["OpenCombine 0.14 has no merge: flatMap over an array of publishers stands for it"])
    printJobs()
    bench.table(
        "mergePool", "merge of 3 AsyncStreams: yield → next(), on the global executor",
        [
            pingPong("AsyncStream alone", streams: 1) { $0[0] },
            pingPong("Freshet", streams: 3) { FreshetSignals.merge($0) },
            pingPong("swift-async-algorithms", streams: 3) { AsyncAlgorithms.merge($0[0], $0[1], $0[2]) },
        ],
        missing: ["swift-async-algorithms merges 2 or 3 sequences: there is no row for 1,000"])
}

private func mergedSignals(_ name: String, count: Int) -> Subject {
    let sources = (0..<count).map { SignalSource("s\($0)") }
    let stage = Stage()
    let counter = Counter()
    let task = stage.startConsumer(to: Signal.merge(sources.map(\.signal)), counting: counter)
    var turn = 0
    return received(name, counter, 1, stage, [task]) {
        sources[turn].fire()
        turn = turn + 1 == count ? 0 : turn + 1
    }
}

private func mergedValues(_ name: String, count: Int) -> Subject {
    let streams = (0..<count).map { _ in AsyncStream<Int>.makeStream() }
    let stage = Stage()
    let counter = Counter()
    let task = stage.startConsumer(to: FreshetSignals.merge(streams.map(\.stream)), counting: counter)
    var turn = 0
    return received(name, counter, 1, stage, [task]) {
        streams[turn].continuation.yield(turn)
        turn = turn + 1 == count ? 0 : turn + 1
    }
}

private func flattened(_ name: String, count: Int) -> Subject {
    let subjects = (0..<count).map { _ in PassthroughSubject<Int, Never>() }
    let counter = Counter()
    let cancellable = subjects.publisher.flatMap { $0 }.sink { _ in counter.add() }
    var turn = 0
    var subject = Subject(name) { operations in
        withExtendedLifetime(cancellable) {
            for _ in 0..<operations {
                subjects[turn].send(turn)
                turn = turn + 1 == count ? 0 : turn + 1
            }
        }
    }
    subject.delivered = Delivered(counter: counter, perOperation: 1)
    return subject
}

/// A task makes at least one job, wherever it is started from here.
private func printJobs() {
    let jobs = [1, 1_000].map { count in
        let stage = Stage()
        let sources = (0..<count).map { SignalSource("s\($0)") }
        let task = stage.startConsumer(to: Signal.merge(sources.map(\.signal)), counting: Counter())
        let jobs = stage.jobCount
        task.cancel()
        stage.step()
        return jobs
    }
    print(
        "\nFrom nothing to a task that waits in next(): \(jobs[0]) job on the executor for a signal alone, "
            + "\(jobs[1]) for a merge of 1,000. The listening task is that one.")
}

/// Yields to the streams in turn, and calls next() each time, in one task on the global executor.
func pingPong<S: AsyncSequence>(
    _ name: String, streams count: Int, first: Int = 0, _ make: ([AsyncStream<Int>]) -> S
) -> Subject {
    let streams = (0..<count).map { _ in AsyncStream<Int>.makeStream() }
    var iterator = make(streams.map(\.stream)).makeAsyncIterator()
    let held = Held((hasNext: { (try? await iterator.next(isolation: nil)) != nil }, turn: 0))
    let counter = Counter()
    // Prepare the streams, so that each yield makes exactly one element.
    if first > 0 {
        for stream in streams { stream.continuation.yield(0) }
        let isThere = runOnPool { for _ in 0..<first { _ = await held.value.hasNext() } }
        precondition(isThere, "\(name): no first element")
    }
    var subject = Subject(
        name,
        onPool: { operations in
            for _ in 0..<operations {
                streams[held.value.turn].continuation.yield(operations)
                held.value.turn = (held.value.turn + 1) % count
                if await held.value.hasNext() { counter.add() }
            }
        })
    subject.delivered = Delivered(counter: counter, perOperation: 1)
    return subject
}
