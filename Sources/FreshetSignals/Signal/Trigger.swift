/// A device with any number of signals, each activated by an identifier.
///
/// ```swift
/// enum Wish: Hashable, Sendable { case reload, more(branch: String) }
/// let trigger = Trigger("operator")
/// let reload = trigger.signal(activatedBy: Wish.reload)
/// trigger.activate(for: Wish.reload)
/// ```
///
/// Identifiers are the same if their dynamic types are the same and they are equal: `1` and `UInt8(1)` are two
/// identifiers. A trigger does not keep its signals alive: an identifier that nobody holds a signal of costs nothing,
/// and to activate it reaches nobody. If it is asked for again later, its occurrences are counted from 1 again.
///
/// A trigger's signal never ends; once the trigger is gone it is silent.
public final class Trigger: Sendable {
    private let name: String
    private let now: @Sendable () -> ContinuousClock.Instant
    private let table = TriggerTable()

    /// - Parameters:
    ///   - name: What the occurrences of all its signals are named after; for people and logs.
    ///   - now: The clock that occurrences are stamped with.
    public init(_ name: String = "trigger", now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.name = name
        self.now = now
    }

    /// The signal that fires when this identifier is activated.
    ///
    /// Signals of one identifier are one source: in a merge of both it is listed twice.
    public func signal(activatedBy id: some Hashable & Sendable) -> Signal {
        Signal(sources: [table.source(for: Identifier(id), name: name, now: now)])
    }

    /// Fires the signal of this identifier.
    ///
    /// It may be called from any thread, waits for no subscriber, and costs as much as this identifier has
    /// subscribers, however many others there are.
    ///
    /// - Parameters:
    ///   - id: Whose signal it is.
    ///   - detail: What happened, for people.
    /// - Returns: How many live subscriptions it reached.
    @discardableResult
    public func activate(for id: some Hashable & Sendable, _ detail: String? = nil) -> Int {
        table.source(for: Identifier(id))?.fire(detail) ?? 0
    }

    /// How many identifiers the trigger knows, for tests.
    var identifierCount: Int { table.count }
}

/// A trigger's sources by identifier, held weakly. A source that goes away takes its row along.
private final class TriggerTable: Sendable {
    private struct Row {
        weak var source: Source?
        /// Tells a row from the one of the same identifier before it.
        let serial: UInt64
    }

    private struct State {
        var rows: [Identifier: Row] = [:]
        var lastSerial: UInt64 = 0
    }

    private let state = Lock(State())

    var count: Int { state.withLock { $0.rows.count } }

    /// The source, if anybody holds it. It is never released under the lock, which its deinitializer takes.
    func source(for id: Identifier) -> Source? {
        state.withLock { $0.rows[id]?.source }
    }

    func source(
        for id: Identifier, name: String, now: @escaping @Sendable () -> ContinuousClock.Instant
    ) -> Source {
        guard id.equalsItself else {
            // Nothing can activate it, and its row could never be found again to be removed.
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
        // Released after the lock: an identifier's deinitializer is not ours to know.
        let removed = state.withLock { state -> (Identifier, Row)? in
            guard let index = state.rows.index(forKey: id), state.rows[index].value.serial == serial else { return nil }
            return state.rows.remove(at: index)
        }
        _ = removed
    }
}
