import FreshetEventLoop
import FreshetSignals
import Synchronization

/// Opens sources for subscribers: on the event loop of a program, or on a shared one.
struct SourceHost: Sendable {
    let sources: @Sendable () throws(SystemCallError) -> SystemSources

    /// - Parameter loop: Nil: the library's own loop. That loop and its thread exist while there are subscribers.
    init(_ loop: EventLoop?) {
        sources = { () throws(SystemCallError) in try SourceRegistry.shared.sources(on: loop) }
    }

    /// A separate host, for tests.
    init(sources: @escaping @Sendable () throws(SystemCallError) -> SystemSources) {
        self.sources = sources
    }

    /// The facts of a source. Each iteration opens the source, or uses an open one.
    ///
    /// - Parameters:
    ///   - open: Returns the facts, and an object that has to live while they can change.
    ///   - otherwise: The only fact if there is no loop, for this reason. The sequence does not end after it.
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

    /// A signal. Each subscription opens its source, or uses an open one.
    func signal(_ open: @escaping @Sendable (SystemSources) -> (Signal, any Sendable)) -> Signal {
        Signal(opening: { [sources] in
            // The facts show why the signal does not fire.
            guard let sources = try? sources() else { return Signal.Opened(.never, keeping: ()) }
            let (signal, held) = open(sources)
            return Signal.Opened(signal, keeping: Lease(held, on: sources))
        })
    }

    static func explain(_ error: SystemCallError) -> String {
        "cannot watch the system (\(error)); raise the limits on open files and threads"
    }
}

/// The open sources of this process, by event loop.
///
/// `shared` is a constant, made at its first use; its mutable state has a lock. It only has weak references, so parts
/// of a program do not affect each other; they only share open sources.
final class SourceRegistry: Sendable {
    static let shared = SourceRegistry()

    private struct Row {
        weak var sources: SystemSources?
        /// Distinguishes it from an earlier row of the same key.
        let serial: UInt64
    }

    private struct State {
        /// The library's own loop has no key. Open sources keep their loop alive, so its identifier is not reused.
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

/// The current fact, then each change; iterating opens the source.
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
