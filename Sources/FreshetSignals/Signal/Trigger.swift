/// The write side of any number of signals, each activated by an identifier.
///
/// ```swift
/// enum Command: Hashable, Sendable { case reload, more(branch: String) }
/// let trigger = Trigger("operator")
/// let reload = trigger.signal(activatedBy: Command.reload)
/// trigger.activate(for: Command.reload)
/// ```
///
/// Two identifiers are the same if they have the same dynamic type and are equal: `1` and `UInt8(1)` are two
/// identifiers. A trigger does not keep its signals alive. If an identifier has no signal, it needs no memory, and
/// activating it has no effect. If a signal of that identifier is made again later, its occurrences are counted from 1
/// again.
///
/// The signals of a trigger never end; they do not fire any more when the trigger has been released.
public final class Trigger: Sendable {
    private let name: String
    private let now: @Sendable () -> ContinuousClock.Instant
    private let table = TriggerTable()

    /// - Parameters:
    ///   - name: The name of the occurrences of all its signals, for people and logs.
    ///   - now: The clock for the instants of occurrences.
    public init(_ name: String = "trigger", now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.name = name
        self.now = now
    }

    /// The signal that fires when this identifier is activated.
    ///
    /// All signals of one identifier share one source: a merge of two of them lists it twice.
    public func signal(activatedBy id: some Hashable & Sendable) -> Signal {
        Signal(sources: [table.source(for: Identifier(id), name: name, now: now)])
    }

    /// Fires the signal of this identifier.
    ///
    /// It may be called from any thread, waits for no subscriber, and takes time proportional to the number of
    /// subscribers of this identifier, however many others there are.
    ///
    /// - Parameters:
    ///   - id: The identifier of the signal.
    ///   - detail: A description of the event, for people.
    /// - Returns: The number of live subscriptions that receive the firing.
    @discardableResult
    public func activate(for id: some Hashable & Sendable, _ detail: String? = nil) -> Int {
        table.source(for: Identifier(id))?.fire(detail) ?? 0
    }

    /// The number of identifiers with a live signal, for tests.
    var identifierCount: Int { table.count }
}

/// The sources of a trigger by identifier, as weak references. A source removes its row when it is released.
private final class TriggerTable: Sendable {
    private struct Row {
        weak var source: Source?
        /// Distinguishes a row from an earlier row of the same identifier.
        let serial: UInt64
    }

    private struct State {
        var rows: [Identifier: Row] = [:]
        var lastSerial: UInt64 = 0
    }

    private let state = Lock(State())

    var count: Int { state.withLock { $0.rows.count } }

    /// The source, if it is alive. It is never released under the lock, because its deinitializer takes the lock.
    func source(for id: Identifier) -> Source? {
        state.withLock { $0.rows[id]?.source }
    }

    func source(
        for id: Identifier, name: String, now: @escaping @Sendable () -> ContinuousClock.Instant
    ) -> Source {
        guard id.equalsItself else {
            // This identifier can never be activated, and its row could not be found to be removed.
            return Source(name: name, now: now)
        }
        return state.withLock { state in
            if let source = state.rows[id]?.source { return source }
            state.lastSerial += 1
            let serial = state.lastSerial
            let source = Source(name: name, now: now) { [self] in remove(id, serial: serial) }
            state.rows[id] = Row(source: source, serial: serial)
            return source
        }
    }

    private func remove(_ id: Identifier, serial: UInt64) {
        // Release it after the lock: an identifier's deinitializer may run arbitrary code.
        let removed = state.withLock { state -> (Identifier, Row)? in
            guard let index = state.rows.index(forKey: id), state.rows[index].value.serial == serial else { return nil }
            return state.rows.remove(at: index)
        }
        _ = removed
    }
}
