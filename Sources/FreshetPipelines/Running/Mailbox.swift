internal import FreshetSignals

/// Where events for a pipeline's machine wait until the engine's task takes them.
final class Mailbox: Sendable {
    private let inbox: CauseInbox
    private let key: CauseInbox.Key
    /// Nil once nobody takes them any more.
    private let events = Lock<[RefreshMachine.Event]?>([])

    init(inbox: CauseInbox, key: CauseInbox.Key) {
        self.inbox = inbox
        self.key = key
    }

    /// From any thread.
    func post(_ event: RefreshMachine.Event) {
        let isFirst = events.withLock { events in
            defer { events?.append(event) }
            return events?.isEmpty ?? false
        }
        if isFirst { inbox.wake(key) }
    }

    /// Takes all that is there.
    func take() -> [RefreshMachine.Event] {
        events.withLock { events in
            guard let taken = events else { return [] }
            events = []
            return taken
        }
    }

    /// Nobody takes anything any more; what is posted from now on is dropped.
    func close() {
        events.withLock { $0 = nil }
    }
}
