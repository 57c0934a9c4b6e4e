import FreshetModel
import FreshetPipelines
import FreshetSignals

/// A source of signals: a row of `freshetctl signals`. ``SignalRegistry`` counts, publishes and logs its occurrences.
@DaemonActor
protocol EventSource: AnyObject, Sendable {
    /// The name of the row, such as `file /etc/hosts`.
    nonisolated var name: String { get }
    /// The signal that fires; nil: the daemon records the occurrences (``SignalRecorder/recordOccurrence(_:row:_:pipeline:count:)``).
    var signal: Signal? { get }
    /// The present state, for people.
    var fact: String { get }
    /// Why the source detects nothing; nil: it works.
    var unavailable: String? { get }
    /// The number of events that do not fire the signal; nil: they are not counted.
    var ignored: UInt64? { get }
    /// Occurrences are logged at the level `info`, because no other message there mentions them.
    var logsAtInfo: Bool { get }
    /// Whether the signal can be fired by hand. A signal of single pipelines cannot.
    var canBeFired: Bool { get }
    /// Fires the signal by hand. Its subscribers receive it like a real one, but the fact does not change.
    func fire(_ detail: String)
    /// The source if it has to be followed while it is open. (To ask the runtime for the protocol of each kind of
    /// source would search all conformances of the program.)
    var following: (any FollowingSource)? { get }
    /// The first pipeline uses the source from now on.
    func useBegan()
    /// No pipeline uses the source any more.
    func useEnded()
}

extension EventSource {
    var unavailable: String? { nil }
    var ignored: UInt64? { nil }
    var logsAtInfo: Bool { false }
    var canBeFired: Bool { true }
    var following: (any FollowingSource)? { nil }
    func useBegan() {}
    func useEnded() {}
}

/// A source that publishes its facts or passes its events on while it is open.
protocol FollowingSource: EventSource {
    /// Follows the source until the task is cancelled.
    func follow() async
}

extension FollowingSource {
    var following: (any FollowingSource)? { self }
}

/// A source that a pipeline uses.
struct SourceReference {
    /// The name of the source.
    let name: String
    /// Whether the pipeline subscribes to the signal; false: it only uses the source's state.
    var isSubscribed = true
    /// The part of the signal that only this pipeline receives; nil: the signal of the source.
    var signal: Signal?
    /// Makes the source if no other pipeline uses it yet; nil: it cannot be made.
    var open: @DaemonActor () -> (any EventSource)? = { nil }

    /// Identifies the source: the paths of two files may differ only in their Unicode normalization.
    var key: ExactText { ExactText(name) }
}
