internal import FreshetSignals

/// A queue of events for a machine, which the engine's task takes.
final class Mailbox<Event: Sendable>: Sendable {
    private let inbox: CauseInbox
    /// The unique key of this mailbox in the engine's inbox.
    let key: CauseInbox.Key
    /// Nil after ``close()``.
    private let events = Lock<[Event]?>([])

    init(inbox: CauseInbox, key: CauseInbox.Key) {
        self.inbox = inbox
        self.key = key
    }

    /// Adds an event, from any thread.
    func post(_ event: Event) {
        let isFirst = events.withLock { events in
            defer { events?.append(event) }
            return events?.isEmpty ?? false
        }
        if isFirst { inbox.wake(key) }
    }

    /// Takes all events.
    func take() -> [Event] {
        events.withLock { events in
            guard let taken = events else { return [] }
            events = []
            return taken
        }
    }

    /// Closes the mailbox; events that are posted from now on are dropped.
    func close() {
        events.withLock { $0 = nil }
    }
}
