import FreshetControl
import FreshetPipelines
import FreshetSignals
import Logging

/// The signal sources of the daemon. Pipelines with the same source share it.
///
/// A source that only some pipelines need is opened for the first of them and closed after the last one.
@DaemonActor
final class SignalRegistry {
    /// Returns the sources of one kind that a pipeline uses.
    typealias Selection = @DaemonActor (PipelineDefinition) -> [SourceReference]

    private struct Entry {
        let source: any EventSource
        /// Nil: the daemon records the occurrences.
        let following: SignalRecorder.Following?
        /// Set to true to end the task that follows the source.
        let ending = CurrentValue(false)
        /// The source exists for as long as the daemon runs.
        let isPermanent: Bool
        /// The number of pipelines that use the source.
        var users = 0
        /// The number of pipelines that subscribe to its signal.
        var subscribers = 0
    }

    private let context: DaemonContext
    private let recorder: SignalRecorder
    private var entries: [String: Entry] = [:]
    private var selections: [Selection] = []
    /// The sets of names of the leases since the last reload: most pipelines use the same sources, so most leases
    /// share a set.
    private var nameSets: Set<Set<String>> = []

    init(_ context: DaemonContext, _ recorder: SignalRecorder) {
        self.context = context
        self.recorder = recorder
    }

    // MARK: Sources

    /// Adds a source that exists for as long as the daemon runs.
    ///
    /// - Parameter isSubscribed: whether a pipeline subscribes to the source's signal.
    func add(
        _ source: any EventSource,
        for isSubscribed: @escaping @DaemonActor (PipelineDefinition) -> Bool = { _ in false }
    ) {
        open(source, isPermanent: true)
        add { [name = source.name] in isSubscribed($0) ? [SourceReference(name: name)] : [] }
    }

    /// Adds a kind of source.
    func add(_ selection: @escaping Selection) {
        selections.append(selection)
    }

    private func open(_ source: any EventSource, isPermanent: Bool) {
        let following = source.signal.map {
            recorder.follow($0, row: source.name, logsAtInfo: source.logsAtInfo)
        }
        let entry = Entry(source: source, following: following, isPermanent: isPermanent)
        entries[source.name] = entry
        guard let source = source as? any FollowingSource else { return }
        context.tasks.add { [ending = entry.ending] in
            await withDiscardingTaskGroup { group in
                group.addTask { await source.follow() }
                for await isEnding in ending where isEnding { break }
                group.cancelAll()
            }
        }
    }

    // MARK: Pipelines

    /// Opens the sources that a pipeline uses, until the lease ends.
    func subscribe(_ definition: PipelineDefinition) -> SignalLease {
        var signals: [Signal] = []
        var (used, subscribed): (Set<String>, Set<String>) = ([], [])
        for reference in references(for: definition) {
            if entries[reference.name] == nil, let source = reference.open() { open(source, isPermanent: false) }
            guard let source = entries[reference.name]?.source else { continue }
            if used.insert(reference.name).inserted {
                entries[reference.name]?.users += 1
                if entries[reference.name]?.users == 1 { source.useBegan() }
            }
            guard reference.isSubscribed, subscribed.insert(reference.name).inserted else { continue }
            entries[reference.name]?.subscribers += 1
            if let signal = reference.signal ?? source.signal { signals.append(signal) }
        }
        return SignalLease(self, signal: .merge(signals), used: shared(used), subscribed: shared(subscribed))
    }

    private func shared(_ names: Set<String>) -> Set<String> { nameSets.insert(names).memberAfterInsert }

    fileprivate func release(_ lease: SignalLease) {
        for name in lease.subscribed { entries[name]?.subscribers -= 1 }
        for name in lease.used {
            entries[name]?.users -= 1
            if let entry = entries[name], entry.users == 0 { entry.source.useEnded() }
        }
    }

    /// Closes the sources that no pipeline uses. A reload calls it at its end, so that a source stays open if another
    /// pipeline takes it over.
    func closeUnused() {
        for (name, entry) in entries where !entry.isPermanent && entry.users == 0 {
            entry.ending.value = true
            entries[name] = nil
        }
        nameSets = []
    }

    /// The names of the sources that a pipeline subscribes to, sorted.
    func names(for definition: PipelineDefinition) -> [String] {
        references(for: definition).filter(\.isSubscribed).map(\.name).sorted()
    }

    fileprivate func references(for definition: PipelineDefinition) -> [SourceReference] {
        selections.flatMap { $0(definition) }
    }
}

extension SignalRegistry: SignalControl {
    func signals() -> [SignalStatus] {
        entries.values.map(\.source).map { source in
            recorder.status(
                source.name, fact: source.fact, unavailable: source.unavailable, ignored: source.ignored)
        }.sorted { $0.name < $1.name }
    }

    func fireSignal(_ name: String, caller: String) throws(ControlError) -> Int {
        guard !context.tasks.isEnding else { throw .busy("the daemon is starting or stopping") }
        guard let entry = entries[name] else {
            throw .noSuchSignal(
                name: name, suggestion: SignalSelection.suggestion(for: name, among: entries.keys.sorted()))
        }
        guard entry.source.canBeFired else { throw .cannotFire(name: name) }
        context.log.log(
            .firedByRequest,
            [.signal: .string(name), .caller: .string(caller), .pipelines: .stringConvertible(entry.subscribers)])
        entry.source.fire("fired by hand by \(caller)")
        return entry.subscribers
    }
}

/// The subscription of a pipeline to its sources.
@DaemonActor
final class SignalLease {
    /// The signals of all subscribed sources, merged.
    let signal: Signal
    fileprivate let used: Set<String>
    fileprivate let subscribed: Set<String>
    private weak var registry: SignalRegistry?

    fileprivate init(_ registry: SignalRegistry, signal: Signal, used: Set<String>, subscribed: Set<String>) {
        self.registry = registry
        self.signal = signal
        self.used = used
        self.subscribed = subscribed
    }

    /// Whether a pipeline with this definition uses and subscribes to the same sources, so that the lease can stay.
    func covers(_ definition: PipelineDefinition) -> Bool {
        guard let references = registry?.references(for: definition) else { return false }
        return used == Set(references.map(\.name))
            && subscribed == Set(references.lazy.filter(\.isSubscribed).map(\.name))
    }

    /// Ends the use of the sources. Call it once the pipeline does not need the signal any more.
    func end() {
        registry?.release(self)
        registry = nil
    }
}
