public import FreshetSignals
import Synchronization

/// One path that a ``FileMonitor`` follows while this object is alive.
public final class FileWatch: Sendable {
    public let path: String
    private let source: SignalSource
    let current: CurrentValue<FileFact>
    private let suppressed = Atomic<UInt64>(0)
    private let onEnd: @Sendable () -> Void

    init(_ path: String, _ fact: FileFact, onEnd: @escaping @Sendable () -> Void) {
        self.path = path
        self.onEnd = onEnd
        source = SignalSource(FileMonitor.signalName(of: path))
        current = CurrentValue(fact)
    }

    deinit { onEnd() }

    /// The file was written and closed, replaced, created or removed; or an entry of the directory was. The
    /// occurrence's detail shows which.
    public var signal: Signal { source.signal }

    /// The current fact.
    public var fact: FileFact { current.value }

    /// The current fact, then each change; a slow reader gets the newest.
    public var facts: some AsyncSequence<FileFact, Never> & Sendable { current }

    /// The number of checks that did not fire: changes on the way to the path, or of rights and times. Events in the
    /// same iteration of the loop count once.
    public var minorChanges: UInt64 { suppressed.load(ordering: .relaxed) }

    /// Fires the signal. The fact is unchanged.
    package func fire(_ detail: String) { source.fire(detail) }

    func suppress() { suppressed.add(1, ordering: .relaxed) }
    func set(_ fact: FileFact) { current.value = fact }
}
