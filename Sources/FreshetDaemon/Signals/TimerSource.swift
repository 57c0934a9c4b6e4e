import FreshetModel
import FreshetPipelines
import FreshetSignals

/// The timers of pipelines (`every`). Each belongs to the engine of its pipeline; this source only shows the next one.
@DaemonActor
final class TimerSource: EventSource {
    nonisolated let name = SignalName.timer
    private let next: @DaemonActor () -> (pipeline: String, at: BootInstant)?

    /// - Parameter next: the next run that a timer starts.
    init(next: @escaping @DaemonActor () -> (pipeline: String, at: BootInstant)?) {
        self.next = next
    }

    var signal: Signal? { nil }
    var fact: String { next().map { "next: \($0.pipeline) in \(($0.at - .now).rounded)" } ?? "no run is planned" }
    var canBeFired: Bool { false }
    func fire(_ detail: String) {}
}
