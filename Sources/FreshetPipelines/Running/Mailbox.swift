internal import FreshetSignals

/// Where events for a pipeline's machine wait until its one task takes them.
///
/// It wakes the task by a signal of its own, which is merged with those that the pipeline listens to: so the task waits
/// in one place.
final class Mailbox: Sendable {
    /// Begins with a character that no configured name has.
    static let signalName = "\u{0}mailbox"

    private let source: SignalSource
    private let events = Lock<[RefreshMachine.Event]>([])

    init(clock: any EngineClock) {
        source = SignalSource(Self.signalName, now: { clock.now })
    }

    var signal: Signal { source.signal }

    /// From any thread.
    func post(_ event: RefreshMachine.Event) {
        events.withLock { $0.append(event) }
        source.fire()
    }

    func wake() {
        source.fire()
    }

    /// Takes all that is there.
    func take() -> [RefreshMachine.Event] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }
}
