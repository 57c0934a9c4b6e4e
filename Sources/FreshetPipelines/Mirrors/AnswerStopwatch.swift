import FreshetModel
internal import FreshetSignals

/// Measures the time from a request to the beginning of its answer, from any thread. The wait for a permit does not
/// count, and neither does the body, whose size differs between a full and an unchanged answer.
final class AnswerStopwatch: Sendable {
    private struct State {
        var asked: BootInstant?
        var time: Duration?
    }

    private let state = Lock(State())
    private let clock: any EngineClock

    init(_ clock: any EngineClock) { self.clock = clock }

    /// The measured time; nil: there was no answer yet.
    var time: Duration? { state.withLock { $0.time } }

    /// The request is made. Further requests, such as those after redirects, belong to it.
    func start() {
        let now = clock.now
        state.withLock { if $0.asked == nil { $0.asked = now } }
    }

    /// The answer has begun, or has ended without a body.
    func stop() {
        guard time == nil else { return }
        let now = clock.now
        state.withLock { state in
            if let asked = state.asked, state.time == nil { state.time = max(.zero, asked.duration(to: now)) }
        }
    }
}
