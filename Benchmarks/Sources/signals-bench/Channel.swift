import AsyncAlgorithms

/// The task that sends waits until the element is taken, so one task performs all operations of a sample.
func receivedChannel(_ name: String) -> Subject {
    let channel = AsyncChannel<Void>()
    let stage = Stage()
    let counter = Counter()
    let task = stage.startConsumer(to: channel, counting: counter)
    var subject = Subject(name) { operations in
        _ = Task(executorPreference: stage) {
            for _ in 0..<operations { await channel.send(()) }
        }
        stage.step()
    }
    subject.delivered = Delivered(counter: counter, perOperation: 1)
    subject.finish = {
        task.cancel()
        stage.step()
    }
    return subject
}
