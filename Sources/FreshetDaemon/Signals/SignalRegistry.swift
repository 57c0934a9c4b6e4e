import FreshetControl
import FreshetModel
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

    @DaemonActor
    private final class Entry {
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

        init(_ source: any EventSource, _ following: SignalRecorder.Following?, isPermanent: Bool) {
            self.source = source
            self.following = following
            self.isPermanent = isPermanent
        }

        /// A pipeline uses it from now on.
        func use() {
            users += 1
            if users == 1 { source.useBegan() }
        }
    }

    /// What a pipeline with certain references uses and subscribes to.
    private struct Usage {
        /// What follows from one reference; a source that is named twice counts once.
        struct Step {
            let entry: Entry
            let index: Int
            let isFirstUse: Bool
            let isFirstSubscription: Bool
        }

        private let references: [SourceReference]
        var steps: [Step] = []
        var used: Set<ExactText> = []
        var subscribed: Set<ExactText> = []

        init(of references: [SourceReference]) { self.references = references }

        /// Whether other references, perhaps with other signals, have the same names.
        func isOf(_ others: [SourceReference]) -> Bool {
            others.count == references.count
                && zip(others, references).allSatisfy { $0.isSubscribed == $1.isSubscribed && $0.key == $1.key }
        }

        mutating func add(_ entry: Entry, _ index: Int) {
            let name = references[index].key
            let isFirstUse = used.insert(name).inserted
            let isFirstSubscription = references[index].isSubscribed && subscribed.insert(name).inserted
            steps.append(
                Step(entry: entry, index: index, isFirstUse: isFirstUse, isFirstSubscription: isFirstSubscription))
        }
    }

    private let context: DaemonContext
    private let recorder: SignalRecorder
    private var entries: [ExactText: Entry] = [:]
    private var selections: [Selection] = []
    /// The sets of names of the leases since the last reload: most pipelines use the same sources, so most leases
    /// share a set.
    private var nameSets: Set<Set<ExactText>> = []
    /// Most pipelines use the same sources as the one before, and to look them all up again takes longer.
    private var lastUsage: Usage?

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
        let entry = Entry(source, following, isPermanent: isPermanent)
        entries[ExactText(source.name)] = entry
        guard let source = source.following else { return }
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
        let references = references(for: definition)
        let usage = lastUsage.flatMap { $0.isOf(references) ? $0 : nil } ?? makeUsage(of: references)
        var signals: [Signal] = []
        for step in usage.steps {
            if step.isFirstUse { step.entry.use() }
            guard step.isFirstSubscription else { continue }
            step.entry.subscribers += 1
            if let signal = references[step.index].signal ?? step.entry.source.signal { signals.append(signal) }
        }
        return SignalLease(self, signal: .merge(signals), used: usage.used, subscribed: usage.subscribed)
    }

    /// Looks up the sources, and opens those that no pipeline uses yet.
    private func makeUsage(of references: [SourceReference]) -> Usage {
        var usage = Usage(of: references)
        for (index, reference) in references.enumerated() {
            if entries[reference.key] == nil, let source = reference.open() { open(source, isPermanent: false) }
            if let entry = entries[reference.key] { usage.add(entry, index) }
        }
        usage.used = shared(usage.used)
        usage.subscribed = shared(usage.subscribed)
        // A source that could not be opened is tried again for the next pipeline.
        lastUsage = usage.steps.count == references.count ? usage : nil
        return usage
    }

    private func shared(_ names: Set<ExactText>) -> Set<ExactText> { nameSets.insert(names).memberAfterInsert }

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
        lastUsage = nil
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
        guard let entry = entries[ExactText(name)] else {
            throw .noSuchSignal(
                name: name, suggestion: SignalSelection.suggestion(for: name, among: entries.keys.map(\.text).sorted()))
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
    fileprivate let used: Set<ExactText>
    fileprivate let subscribed: Set<ExactText>
    private weak var registry: SignalRegistry?

    fileprivate init(
        _ registry: SignalRegistry, signal: Signal, used: Set<ExactText>, subscribed: Set<ExactText>
    ) {
        self.registry = registry
        self.signal = signal
        self.used = used
        self.subscribed = subscribed
    }

    /// Whether a pipeline with this definition uses and subscribes to the same sources, so that the lease can stay.
    func covers(_ definition: PipelineDefinition) -> Bool {
        guard let references = registry?.references(for: definition) else { return false }
        return used == Set(references.map(\.key))
            && subscribed == Set(references.lazy.filter(\.isSubscribed).map(\.key))
    }

    /// Ends the use of the sources. Call it once the pipeline does not need the signal any more.
    func end() {
        registry?.release(self)
        registry = nil
    }
}
