import FreshetModel
import Glibc
import Logging
import Synchronization
import TestSupport
import Testing

@testable import FreshetPipelines

/// Records log lines.
final class LogRecorder: Sendable {
    struct Line: Hashable, Sendable {
        var level: Logger.Level
        var message: String
        var metadata: [String: String]
    }

    private let stored = Mutex<[Line]>([])

    var lines: [Line] { stored.withLock { $0 } }
    /// Returns and removes the recorded lines.
    func take() -> [Line] {
        stored.withLock { lines in
            defer { lines = [] }
            return lines
        }
    }

    func add(_ line: Line) { stored.withLock { $0.append(line) } }

    /// A logger for all levels that writes to this recorder.
    var logger: Logger { Logger(label: "test") { _ in Handler(registry: self) } }

    private struct Handler: LogHandler {
        let registry: LogRecorder
        var metadata: Logger.Metadata = [:]
        var metadataProvider: Logger.MetadataProvider?
        var logLevel = Logger.Level.trace

        init(registry: LogRecorder) { self.registry = registry }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let all = metadata.merging(event.metadata ?? [:]) { $1 }
            registry.add(
                Line(
                    level: event.level, message: "\(event.message)",
                    metadata: all.mapValues { "\($0)" }))
        }
    }
}

/// Makes the summary of a run from the values that a test needs.
func summary(
    _ outcome: RunOutcome, run: UInt64 = 1, at ended: BootInstant, failure: RunFailure? = nil,
    counts: Bool = true
) -> RunSummary {
    RunSummary(
        run: run, reason: .signals, causes: [RunCause("network", count: 2, first: ended)],
        started: ended.advanced(by: .milliseconds(-1500)), ended: ended, outcome: outcome, failure: failure,
        counts: counts, generation: outcome == .changed ? 3 : nil)
}

/// A clock with one timer that only advances when a test calls ``advance(by:)``.
final class FakeClock: EngineClock {
    private struct State {
        var now = BootInstant.now
        var due: BootInstant?
        var handler: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    var now: BootInstant { state.withLock { $0.now } }
    var wallNow: WallTime { WallTime(seconds: 0) }
    /// When the timer is due.
    var due: BootInstant? { state.withLock { $0.due } }

    func makeTimer(_ handler: @escaping @Sendable () -> Void) -> any EngineTimer {
        state.withLock { $0.handler = handler }
        return Timer(clock: self)
    }

    func advance(by duration: Duration) {
        let handler = state.withLock { state in
            state.now += duration
            guard let due = state.due, due <= state.now else { return nil as (@Sendable () -> Void)? }
            state.due = nil
            return state.handler
        }
        handler?()
    }

    private final class Timer: EngineTimer {
        let clock: FakeClock

        init(clock: FakeClock) { self.clock = clock }

        func arm(at instant: BootInstant) { clock.state.withLock { $0.due = instant } }
        func disarm() { clock.state.withLock { $0.due = nil } }
    }
}
