internal import FreshetSignals

/// Where events for a machine wait until the engine's task takes them.
final class Mailbox<Event: Sendable>: Sendable {
    private let inbox: CauseInbox
    /// In the engine's inbox; no other mailbox has it.
    let key: CauseInbox.Key
    /// Nil once nobody takes them any more.
    private let events = Lock<[Event]?>([])

    init(inbox: CauseInbox, key: CauseInbox.Key) {
        self.inbox = inbox
        self.key = key
    }

    /// From any thread.
    func post(_ event: Event) {
        let isFirst = events.withLock { events in
            defer { events?.append(event) }
            return events?.isEmpty ?? false
        }
        if isFirst { inbox.wake(key) }
    }

    /// Takes all that is there.
    func take() -> [Event] {
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
