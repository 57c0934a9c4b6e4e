package import FreshetModel

/// Something that happened, as `Monitor` reports it.
///
/// Create events with the static functions: they set the fields that belong to the kind.
package struct ControlEvent: Codable, Hashable, Sendable {
    package enum Kind: String, OpenEnumeration, CaseIterable, Hashable, Sendable {
        case signal, runStarted, runEnded, state, reloaded
        /// The fact of a source of signals has changed.
        case fact
        /// Events are missing here: the client read too slowly.
        case skipped
        /// A kind that only a newer daemon knows.
        case unknown
    }

    package var at: Int64
    package var kind: Kind
    package var pipeline: String?
    package var signal: String?
    /// The row of `Signals` that the event belongs to, if its signal has several rows.
    package var source: String?
    /// The number of the signal's firing, counted from 1; or how many events were skipped.
    package var number: Int64?
    package var detail: String?
    @Boxed package var run: RunStatus?
    @Boxed package var generation: GenerationStatus?
    package var state: PipelineState?
    package var waitingFor: WaitingReason?
    package var waitingUntil: Int64?

    init(at: Int64, kind: Kind, pipeline: String? = nil) {
        self.at = at
        self.kind = kind
        self.pipeline = pipeline
    }

    /// A signal fired.
    ///
    /// - Parameters:
    ///   - number: the number of the firing, counted from 1 for each source.
    ///   - source: the source, if the signal has several sources.
    ///   - pipeline: set if only one pipeline receives the signal, such as its timer.
    package static func signal(
        _ signal: String, number: Int64, detail: String? = nil, source: String? = nil, pipeline: String? = nil,
        at: Int64
    ) -> ControlEvent {
        var event = ControlEvent(at: at, kind: .signal, pipeline: pipeline)
        event.signal = signal
        event.source = source
        event.number = number
        event.detail = detail
        return event
    }

    /// - Parameters:
    ///   - signal: the signal of the source.
    ///   - source: the source, if the signal has several sources.
    ///   - fact: the new fact, such as `reachable via enp3s0`.
    package static func fact(_ signal: String, source: String? = nil, _ fact: String, at: Int64) -> ControlEvent {
        var event = ControlEvent(at: at, kind: .fact)
        event.signal = signal
        event.source = source
        event.detail = fact
        return event
    }

    package static func runStarted(_ run: RunStatus, of pipeline: String, at: Int64) -> ControlEvent {
        var event = ControlEvent(at: at, kind: .runStarted, pipeline: pipeline)
        event.run = run
        return event
    }

    /// - Parameter generation: the generation that the run committed; nil if it committed nothing.
    package static func runEnded(
        _ run: RunStatus, of pipeline: String, generation: GenerationStatus? = nil, at: Int64
    ) -> ControlEvent {
        var event = ControlEvent(at: at, kind: .runEnded, pipeline: pipeline)
        event.run = run
        event.generation = generation
        return event
    }

    /// - Parameter detail: a sentence with details of the wait, if there are any.
    package static func state(
        _ state: PipelineState, of pipeline: String, waitingFor: WaitingReason? = nil, waitingUntil: Int64? = nil,
        detail: String? = nil, at: Int64
    ) -> ControlEvent {
        var event = ControlEvent(at: at, kind: .state, pipeline: pipeline)
        event.detail = detail
        event.state = state
        event.waitingFor = waitingFor
        event.waitingUntil = waitingUntil
        return event
    }

    /// - Parameter detail: what changed, such as `2 pipelines added, 1 changed`.
    package static func reloaded(detail: String, at: Int64) -> ControlEvent {
        var event = ControlEvent(at: at, kind: .reloaded)
        event.detail = detail
        return event
    }

    package static func skipped(_ count: Int64, at: Int64) -> ControlEvent {
        var event = ControlEvent(at: at, kind: .skipped)
        event.number = count
        return event
    }
}
