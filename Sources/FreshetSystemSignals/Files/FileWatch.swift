public import FreshetSignals
import Synchronization

/// One path that a ``FileMonitor`` follows, for as long as this is kept.
public final class FileWatch: Sendable {
    public let path: String
    private let source: SignalSource
    let current: CurrentValue<FileFact>
    private let passedOver = Atomic<UInt64>(0)
    private let onEnd: @Sendable () -> Void

    init(_ path: String, _ fact: FileFact, onEnd: @escaping @Sendable () -> Void) {
        self.path = path
        self.onEnd = onEnd
        source = SignalSource(FileMonitor.signalName(of: path))
        current = CurrentValue(fact)
    }

    deinit { onEnd() }

    /// What is at the path changed: it was written and closed, replaced, created or removed; for a directory, an entry
    /// of it was. The occurrence's detail says which.
    public var signal: Signal { source.signal }

    /// The present state.
    public var fact: FileFact { current.value }

    /// The present state first, then what becomes of it; a slow reader gets the newest.
    public var facts: some AsyncSequence<FileFact, Never> & Sendable { current }

    /// How often something was heard that fired nothing: on the way to the path, or of its rights and times. What came
    /// between two turns of the loop is one.
    public var minorChanges: UInt64 { passedOver.load(ordering: .relaxed) }

    /// Fires the signal by hand. What is known of the file stays.
    package func raise(_ detail: String) { source.fire(detail) }

    func passOver() { passedOver.add(1, ordering: .relaxed) }
    func set(_ fact: FileFact) { current.value = fact }
    func fire(_ detail: String) { source.fire(detail) }
}
