import FreshetSignals
import OpenCombine

/// Activates one of many identifiers, each of which has a subscriber that does not call next().
func activate(_ bench: Bench) {
    bench.table(
        "trigger", "Activating an identifier of so many, each with one subscriber",
        [
            trigger("Freshet, of 1", count: 1, stride: 0),
            trigger("Freshet, one of 10,000", count: 10_000, stride: 0),
            trigger("Freshet, each of 10,000 in turn", count: 10_000, stride: 7),
            streams("dictionary of AsyncStream, of 1", count: 1, stride: 0),
            streams("dictionary of AsyncStream, one of 10,000", count: 10_000, stride: 0),
            streams("dictionary of AsyncStream, each of 10,000 in turn", count: 10_000, stride: 7),
            subjects("dictionary of OpenCombine's subjects, of 1", count: 1, stride: 0),
            subjects("dictionary of OpenCombine's subjects, one of 10,000", count: 10_000, stride: 0),
            subjects("dictionary of OpenCombine's subjects, each in turn", count: 10_000, stride: 7),
        ],
        missing: [
            "OpenCombine and swift-async-algorithms have no trigger: a dictionary, of one thread alone, stands for it"
        ])
}

/// - Parameter stride: The distance from one identifier to the next.
private func turns(_ name: String, count: Int, stride: Int, _ activate: @escaping (Int) -> Void) -> Subject {
    var id = count / 2
    return Subject(name) { operations in
        for _ in 0..<operations {
            activate(id)
            id = (id + stride) % count
        }
    }
}

private func trigger(_ name: String, count: Int, stride: Int) -> Subject {
    let trigger = Trigger("t")
    let iterators = (0..<count).map { trigger.signal(activatedBy: $0).makeAsyncIterator() }
    return turns(name, count: count, stride: stride) { id in
        withExtendedLifetime(iterators) { _ = trigger.activate(for: id) }
    }
}

private func streams(_ name: String, count: Int, stride: Int) -> Subject {
    var table: [Int: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)] = [:]
    for id in 0..<count { table[id] = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1)) }
    return turns(name, count: count, stride: stride) { id in _ = table[id]?.continuation.yield() }
}

private func subjects(_ name: String, count: Int, stride: Int) -> Subject {
    let counter = Counter()
    var table: [Int: PassthroughSubject<Void, Never>] = [:]
    for id in 0..<count { table[id] = PassthroughSubject() }
    let cancellables = table.values.map { $0.sink { counter.add() } }
    var subject = turns(name, count: count, stride: stride) { id in
        withExtendedLifetime(cancellables) { table[id]?.send() }
    }
    subject.delivered = Delivered(counter: counter, perOperation: 1)
    return subject
}
