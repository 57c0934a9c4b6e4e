import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging

/// The signal sources of the daemon. Pipelines with the same source share it.
///
/// A source that only some pipelines need is opened for the first of them and closed after the last one.
@DaemonActor
final class SignalRegistry {
    /// Returns the sources of one kind that a pipeline with these needs uses.
    typealias Selection = @DaemonActor (SignalNeeds) -> [SourceReference]

    @DaemonActor
    fileprivate final class Entry {
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

    /// What pipelines with certain needs use and subscribe to.
    @DaemonActor
    fileprivate final class Usage {
        struct Use {
            let key: ExactText
            let entry: Entry
            /// Whether the pipelines receive the signal.
            var isSubscribed: Bool
        }

        nonisolated let needs: SignalNeeds
        /// The sources, each once.
        let uses: [Use]
        /// The signals of the subscribed sources, merged.
        nonisolated let signal: Signal
        weak var registry: SignalRegistry?

        init(_ registry: SignalRegistry, _ needs: SignalNeeds, _ references: [SourceReference]) {
            var uses: [Use] = []
            var signals: [Signal] = []
            for reference in references {
                guard let entry = registry.entries[reference.key] else { continue }
                let known = uses.firstIndex { $0.entry === entry }
                let index = known ?? uses.endIndex
                if known == nil { uses.append(Use(key: reference.key, entry: entry, isSubscribed: false)) }
                // A source that is named twice counts once.
                guard reference.isSubscribed, !uses[index].isSubscribed else { continue }
                uses[index].isSubscribed = true
                if let signal = reference.signal ?? entry.source.signal { signals.append(signal) }
            }
            self.registry = registry
            self.needs = needs
            self.uses = uses
            signal = .merge(signals)
        }

        /// A pipeline uses the sources from now on.
        func begin() {
            for use in uses {
                use.entry.use()
                if use.isSubscribed { use.entry.subscribers += 1 }
            }
        }

        /// A pipeline does not use the sources any more.
        func end() {
            for use in uses {
                if use.isSubscribed { use.entry.subscribers -= 1 }
                use.entry.users -= 1
                if use.entry.users == 0 { use.entry.source.useEnded() }
            }
        }

        /// Whether a pipeline with these needs uses and subscribes to the same sources.
        func covers(_ new: SignalNeeds) -> Bool {
            if needs.isCertainlyEqual(to: new) { return true }
            guard let references = registry?.references(for: new) else { return false }
            return Set(uses.map(\.key)) == Set(references.map(\.key))
                && Set(uses.lazy.filter(\.isSubscribed).map(\.key))
                    == Set(references.lazy.filter(\.isSubscribed).map(\.key))
        }
    }

    private let context: DaemonContext
    private let recorder: SignalRecorder
    private var entries: [ExactText: Entry] = [:]
    private var selections: [Selection] = []
    /// The usages of the last pipelines, the newest last: most pipelines use the same sources as one of these, and to
    /// look the sources up again takes longer.
    private var recent: [Usage] = []
    /// The number of usages that are compared with a pipeline's needs.
    private static let recentLimit = 8

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
        for isSubscribed: @escaping @DaemonActor (SignalNeeds) -> Bool = { _ in false }
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
    func subscribe(_ needs: SignalNeeds) -> SignalLease {
        let usage = recent.last { $0.needs.isCertainlyEqual(to: needs) } ?? makeUsage(for: needs)
        usage.begin()
        return SignalLease(usage)
    }

    /// Looks up the sources, and opens those that no pipeline uses yet.
    private func makeUsage(for needs: SignalNeeds) -> Usage {
        let references = references(for: needs)
        for reference in references where entries[reference.key] == nil {
            if let source = reference.open() { open(source, isPermanent: false) }
        }
        let usage = Usage(self, needs, references)
        // A source that could not be opened is tried again for the next pipeline.
        guard references.allSatisfy({ entries[$0.key] != nil }) else { return usage }
        if recent.count == Self.recentLimit { recent.removeFirst() }
        recent.append(usage)
        return usage
    }

    /// Closes the sources that no pipeline uses. A reload calls it at its end, so that a source stays open if another
    /// pipeline takes it over.
    func closeUnused() {
        for (name, entry) in entries where !entry.isPermanent && entry.users == 0 {
            entry.ending.value = true
            entries[name] = nil
        }
        recent = []
    }

    /// The names of the sources that a pipeline subscribes to, sorted.
    func names(for needs: SignalNeeds) -> [String] {
        references(for: needs).filter(\.isSubscribed).map(\.name).sorted()
    }

    fileprivate func references(for needs: SignalNeeds) -> [SourceReference] {
        selections.flatMap { $0(needs) }
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
///
/// It is a value, so that a pipeline has no object for it: pipelines with equal needs share what it refers to.
struct SignalLease: Sendable {
    private let usage: SignalRegistry.Usage

    @DaemonActor
    fileprivate init(_ usage: SignalRegistry.Usage) { self.usage = usage }

    /// The target of the pipeline's requests.
    var target: NetworkTarget { usage.needs.target }

    /// The signals of all subscribed sources, merged.
    var signal: Signal { usage.signal }

    /// Whether a pipeline with these needs uses and subscribes to the same sources, so that the lease can stay.
    @DaemonActor
    func covers(_ needs: SignalNeeds) -> Bool { usage.covers(needs) }

    /// Ends the use of the sources. Call it once, when the pipeline does not need the signal any more.
    @DaemonActor
    func end() { usage.end() }
}
