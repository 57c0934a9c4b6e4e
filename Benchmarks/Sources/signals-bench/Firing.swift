import FreshetSignals
import OpenCombine

/// The producer alone: no consumer calls next().
func fireUnread(_ bench: Bench) {
    bench.table(
        "fire", "Firing, one subscriber that does not ask",
        [
            unreadStream("AsyncStream, newest 1", count: 1, policy: .bufferingNewest(1)),
            unreadGrowingStream(),
            unreadSignal("Freshet", count: 1),
            unreadSubject("OpenCombine, which delivers at once", count: 1),
        ])
    bench.table(
        "fan", "Firing, so many subscribers that do not ask; for each firing",
        [
            unreadStream("AsyncStream × 1,000, newest 1", count: 1_000, policy: .bufferingNewest(1)),
            unreadSignal("Freshet 1", count: 1),
            unreadSignal("Freshet 10", count: 10),
            unreadSignal("Freshet 100", count: 100),
            unreadSignal("Freshet 1,000", count: 1_000),
            unreadSubject("OpenCombine 1,000, which delivers at once", count: 1_000),
        ])
}

private func unreadSignal(_ name: String, count: Int) -> Subject {
    let source = SignalSource("s")
    let iterators = (0..<count).map { _ in source.signal.makeAsyncIterator() }
    return Subject(name) { operations in
        withExtendedLifetime(iterators) {
            for _ in 0..<operations { source.fire() }
        }
    }
}

private func unreadStream(
    _ name: String, count: Int, policy: AsyncStream<Void>.Continuation.BufferingPolicy
) -> Subject {
    let streams = (0..<count).map { _ in AsyncStream<Void>.makeStream(bufferingPolicy: policy) }
    return Subject(name) { operations in
        for _ in 0..<operations {
            for stream in streams { stream.continuation.yield() }
        }
    }
}

/// Its buffer grows with each element, so each sample has its own stream, and releases it.
private func unreadGrowingStream() -> Subject {
    Subject("AsyncStream, unbounded") { operations in
        let stream = AsyncStream<Void>.makeStream()
        for _ in 0..<operations { stream.continuation.yield() }
    }
}

private func unreadSubject(_ name: String, count: Int) -> Subject {
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

/// The time from the firing until all waiting tasks have received it and wait again, on one thread.
func fireAndDeliver(_ bench: Bench) {
    bench.table(
        "deliver", "Firing → delivery, one task that waits, on one thread",
        [
            receivedStream("AsyncStream", count: 1),
            receivedSignal("Freshet", count: 1) { $0 },
            receivedSignal("Freshet, coalesced()", count: 1) { $0.coalesced() },
            receivedSignal("Freshet, causes", count: 1) { $0.causes },
            receivedChannel("AsyncChannel (swift-async-algorithms)"),
        ],
        missing: ["OpenCombine calls a closure in the sender: its row is in the first table"])
    bench.table(
        "deliverFan", "Firing → delivery, so many tasks that wait, on one thread; for each firing",
        [
            receivedStream("AsyncStream × 1,000", count: 1_000),
            receivedSignal("Freshet 10", count: 10) { $0 },
            receivedSignal("Freshet 100", count: 100) { $0 },
            receivedSignal("Freshet 1,000", count: 1_000) { $0 },
        ],
        missing: ["AsyncChannel: an element goes to one of its readers, not to all"])
}

private func receivedSignal<S: AsyncSequence & Sendable>(
    _ name: String, count: Int, _ view: (Signal) -> S
) -> Subject where S.Element: Sendable {
    let source = SignalSource("s")
    let stage = Stage()
    let counter = Counter()
    let tasks = (0..<count).map { _ in stage.startConsumer(to: view(source.signal), counting: counter) }
    return received(name, counter, count, stage, tasks) { source.fire() }
}

private func receivedStream(_ name: String, count: Int) -> Subject {
    let streams = (0..<count).map { _ in AsyncStream<Void>.makeStream() }
    let stage = Stage()
    let counter = Counter()
    let tasks = streams.map { stage.startConsumer(to: $0.stream, counting: counter) }
    return received(name, counter, count, stage, tasks) {
        for stream in streams { stream.continuation.yield() }
    }
}

/// A subject whose operation is one firing, then steps until all tasks have received it.
func received(
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
