import FreshetSignals
import OpenCombine

/// The producer alone: nobody asks for what is fired.
func fireUnheard(_ bench: Bench) {
    bench.table(
        "fire", "Firing, one subscriber that does not ask",
        [
            unheardStream("AsyncStream, newest 1", count: 1, policy: .bufferingNewest(1)),
            unheardGrowingStream(),
            unheardSignal("Freshet", count: 1),
            unheardSubject("OpenCombine, which delivers at once", count: 1),
        ])
    bench.table(
        "fan", "Firing, so many subscribers that do not ask; for each firing",
        [
            unheardStream("AsyncStream × 1,000, newest 1", count: 1_000, policy: .bufferingNewest(1)),
            unheardSignal("Freshet 1", count: 1),
            unheardSignal("Freshet 10", count: 10),
            unheardSignal("Freshet 100", count: 100),
            unheardSignal("Freshet 1,000", count: 1_000),
            unheardSubject("OpenCombine 1,000, which delivers at once", count: 1_000),
        ])
}

private func unheardSignal(_ name: String, count: Int) -> Subject {
    let source = SignalSource("s")
    let iterators = (0..<count).map { _ in source.signal.makeAsyncIterator() }
    return Subject(name) { operations in
        withExtendedLifetime(iterators) {
            for _ in 0..<operations { source.fire() }
        }
    }
}

private func unheardStream(
    _ name: String, count: Int, policy: AsyncStream<Void>.Continuation.BufferingPolicy
) -> Subject {
    let streams = (0..<count).map { _ in AsyncStream<Void>.makeStream(bufferingPolicy: policy) }
    return Subject(name) { operations in
        for _ in 0..<operations {
            for stream in streams { stream.continuation.yield() }
        }
    }
}

/// Its buffer grows with each element, so each sample has a stream of its own, which it also frees.
private func unheardGrowingStream() -> Subject {
    Subject("AsyncStream, unbounded") { operations in
        let stream = AsyncStream<Void>.makeStream()
        for _ in 0..<operations { stream.continuation.yield() }
    }
}

private func unheardSubject(_ name: String, count: Int) -> Subject {
    let counter = Counter()
    let sender = PassthroughSubject<Void, Never>()
    let cancellables = (0..<count).map { _ in sender.sink { counter.add() } }
    var subject = Subject(name) { operations in
        withExtendedLifetime(cancellables) {
            for _ in 0..<operations { sender.send() }
        }
    }
    subject.delivered = Delivered(counter: counter, perOperation: count)
    return subject
}

/// From the firing until all who wait have what they waited for and wait again, on one thread.
func fireAndDeliver(_ bench: Bench) {
    bench.table(
        "deliver", "Firing → delivery, one task that waits, on one thread",
        [
            heardStream("AsyncStream", count: 1),
            heardSignal("Freshet", count: 1) { $0 },
            heardSignal("Freshet, coalesced()", count: 1) { $0.coalesced() },
            heardSignal("Freshet, causes", count: 1) { $0.causes },
            heardChannel("AsyncChannel (swift-async-algorithms)"),
        ],
        missing: ["OpenCombine calls a closure in the sender: its row is in the first table"])
    bench.table(
        "deliverFan", "Firing → delivery, so many tasks that wait, on one thread; for each firing",
        [
            heardStream("AsyncStream × 1,000", count: 1_000),
            heardSignal("Freshet 10", count: 10) { $0 },
            heardSignal("Freshet 100", count: 100) { $0 },
            heardSignal("Freshet 1,000", count: 1_000) { $0 },
        ],
        missing: ["AsyncChannel: an element goes to one of its readers, not to all"])
}

private func heardSignal<S: AsyncSequence & Sendable>(
    _ name: String, count: Int, _ view: (Signal) -> S
) -> Subject where S.Element: Sendable {
    let source = SignalSource("s")
    let stage = Stage()
    let counter = Counter()
    let tasks = (0..<count).map { _ in stage.listen(to: view(source.signal), counting: counter) }
    return heard(name, counter, count, stage, tasks) { source.fire() }
}

private func heardStream(_ name: String, count: Int) -> Subject {
    let streams = (0..<count).map { _ in AsyncStream<Void>.makeStream() }
    let stage = Stage()
    let counter = Counter()
    let tasks = streams.map { stage.listen(to: $0.stream, counting: counter) }
    return heard(name, counter, count, stage, tasks) {
        for stream in streams { stream.continuation.yield() }
    }
}

/// A subject whose every operation is: fire, then step until all have taken it.
func heard(
    _ name: String, _ counter: Counter, _ count: Int, _ stage: Stage, _ tasks: [Task<Void, Never>],
    _ fire: @escaping () -> Void
) -> Subject {
    let before = counter.value
    precondition(before == 0, "\(name): something was delivered before it was fired")
    var subject = Subject(name) { operations in
        for _ in 0..<operations {
            fire()
            stage.step()
        }
    }
    subject.delivered = Delivered(counter: counter, perOperation: count)
    subject.finish = {
        for task in tasks { task.cancel() }
        stage.step()
    }
    return subject
}
