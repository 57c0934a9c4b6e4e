import FreshetEventLoop
import FreshetSignals
import Synchronization

/// Where sources are opened by who listens to them: on the loop of a program, or on the one that all share who have
/// none.
struct SourceHost: Sendable {
    let sources: @Sendable () throws(SystemCallError) -> SystemSources

    /// - Parameter loop: nil: the library's own. It and its thread are there while somebody listens.
    init(_ loop: EventLoop?) {
        sources = { () throws(SystemCallError) in try SourceRegistry.shared.sources(on: loop) }
    }

    /// A place of one's own, for tests.
    init(sources: @escaping @Sendable () throws(SystemCallError) -> SystemSources) {
        self.sources = sources
    }

    /// The facts of a source that each iteration opens, or finds open.
    ///
    /// - Parameters:
    ///   - open: returns the facts, and what has to live for them to change.
    ///   - otherwise: the one fact there is without a loop, for this reason. The sequence goes on waiting after it.
    func facts<Fact: Sendable>(
        _ open: @escaping @Sendable (SystemSources) -> (CurrentValue<Fact>, any Sendable),
        otherwise: @escaping @Sendable (_ reason: String) -> Fact
    ) -> FactSequence<Fact> {
        FactSequence { [sources] in
            do throws(SystemCallError) {
                let sources = try sources()
                let (current, held) = open(sources)
                return (current, Lease(held, on: sources))
            } catch {
                return (CurrentValue(otherwise(Self.explain(error))), nil)
            }
        }
    }

    /// A signal that each subscription opens, or finds open.
    func signal(_ open: @escaping @Sendable (SystemSources) -> (Signal, any Sendable)) -> Signal {
        Signal(opening: { [sources] in
            // Why it is silent is what the facts say.
            guard let sources = try? sources() else { return Signal.Opened(.never, keeping: ()) }
            let (signal, held) = open(sources)
            return Signal.Opened(signal, keeping: Lease(held, on: sources))
        })
    }

    static func explain(_ error: SystemCallError) -> String {
        "the system cannot be listened to (\(error)): raise the limits on open files and threads"
    }
}

/// The sources that are open in this process, by the loops that they are on.
///
/// `shared` is a constant, made at its first use; what changes is behind the lock. It keeps nothing open or alive, so
/// that nothing of one part of a program is to be seen in another but that what is open is not opened twice.
final class SourceRegistry: Sendable {
    static let shared = SourceRegistry()

    private struct Row {
        weak var sources: SystemSources?
        /// Tells it from the one of the same key before it.
        let serial: UInt64
    }

    private struct State {
        /// The library's own loop has no key. Open sources keep their loop, so that no other one has its identifier.
        var rows: [ObjectIdentifier?: Row] = [:]
        var lastSerial: UInt64 = 0
    }

    private let state = Mutex(State())

    func sources(on loop: EventLoop?) throws(SystemCallError) -> SystemSources {
        let key = loop.map { ObjectIdentifier($0) }
        return try state.withLock { state throws(SystemCallError) in
            if let sources = state.rows[key]?.sources { return sources }
            state.lastSerial += 1
            let serial = state.lastSerial
            let onEnd: @Sendable () -> Void = { [weak self] in self?.forget(key, serial) }
            let sources: SystemSources
            if let loop {
                sources = SystemSources(loop, onEnd: onEnd)
            } else {
                let own = try DedicatedLoop()
                sources = SystemSources(own.loop, own, onEnd: onEnd)
            }
            state.rows[key] = Row(sources: sources, serial: serial)
            return sources
        }
    }

    private func forget(_ key: ObjectIdentifier?, _ serial: UInt64) {
        state.withLock { if $0.rows[key]?.serial == serial { $0.rows[key] = nil } }
    }
}

/// The present fact first, then what becomes of it: opened by who iterates.
struct FactSequence<Fact: Sendable>: AsyncSequence, Sendable {
    typealias Element = Fact
    typealias Failure = Never

    let open: @Sendable () -> (CurrentValue<Fact>, Lease?)

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: CurrentValue<Fact>.AsyncIterator
        let lease: Lease?

        mutating func next(isolation: isolated (any Actor)? = #isolation) async -> Fact? {
            await base.next(isolation: isolation)
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        let (current, lease) = open()
        return AsyncIterator(base: current.makeAsyncIterator(), lease: lease)
    }
}

@available(*, unavailable)
extension FactSequence.AsyncIterator: Sendable {}
