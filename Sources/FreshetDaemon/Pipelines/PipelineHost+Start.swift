import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Synchronization

/// The start of all pipelines.
extension PipelineHost {
    /// Starts all pipelines. One query reads their stored states.
    ///
    /// Other work continues meanwhile, and reloads wait.
    func start(_ definitions: [PipelineDefinition]) async {
        await lock.acquire()
        defer { lock.release() }
        let prepared: [Preparation]
        var stored: CacheStore.StoredStates
        (prepared, stored) = await prepare(definitions)
        let now = WallTime.now
        let copies = await context.results(ofWorkOn: definitions.count, Self.startJob) { [stored] range in
            range.map { index in
                let definition = definitions[index]
                return StoredCopy(of: definition, prepared[index], stored.known[definition.name], at: now)
            }
        }
        for (index, copy) in copies.enumerated() where copy?.needsAccess == true {
            await store.setAccess(definitions[index])
        }
        let overdue = zip(definitions, copies).filter { $1?.isOverdue == true }.map(\.0)
        await OverdueCopies(store, context.limiter).settle(overdue, &stored.known)
        await subscribeAndStart(definitions, prepared, stored, copies)
        sortedNames = nil
        await hooks.assignAll(definitions) { running($0)?.runner.status.kept }
        let used = UsedStates(consume prepared, consume stored, consume copies)
        context.pools.configuration.perform("pipelines") { used.free() }
        memoryRelease.mayBeUseful()
    }

    /// Reads the stored states, and prepares the pipelines meanwhile.
    ///
    /// A separate function, because the child task keeps its result until the function ends that made the task.
    private func prepare(_ definitions: [PipelineDefinition]) async -> ([Preparation], CacheStore.StoredStates) {
        async let stored = store.remembered()
        let prepared = await context.results(ofWorkOn: definitions.count, Self.startJob) {
            [target = networks.daemonTarget] range in
            definitions[range].map {
                Preparation($0, SignalNeeds($0, target: NetworkTarget($0, daemonTarget: target)))
            }
        }
        return (prepared, await stored)
    }

    /// The name of ``start(_:)`` in the log.
    private static let startJob = "start of pipelines"

    /// Pipelines that are about to start, and get their signals already.
    private struct SubscribedPiece: Sendable {
        /// The index of the first pipeline.
        let begin: Int
        /// Nil for a pipeline whose state could not be read with those of the others.
        let pipelines: [Subscribed?]
    }

    /// A pipeline that is about to start, and gets its signals already.
    private struct Subscribed: Sendable {
        let lease: SignalLease
        let registration: PipelineEngine.Registration
        let seed: UInt64
    }

    /// A runner that has not started, and what others need to know of it.
    private struct MadeRunner: Sendable {
        let runner: PipelineRunner
        let subscribed: Subscribed
        let overview: PipelineOverview.Entry
        let mayBeOnDirectNetwork: Bool
    }

    /// Subscribes the pipelines to their signals, makes their runners, and starts them. If there are many, a worker
    /// makes runners while this thread, which alone may do that, subscribes and starts others.
    private func subscribeAndStart(
        _ definitions: [PipelineDefinition], _ prepared: [Preparation], _ stored: CacheStore.StoredStates,
        _ copies: [StoredCopy?]
    ) async {
        let work = runnerWork(definitions, stored, copies)
        let (added, adding) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        async let helping: Void = context.help(with: work, whenever: added)
        // One system call instead of one for each pipeline.
        var seeds = Jitter(seed: .random(in: .min ... .max))
        for begin in stride(from: 0, to: definitions.count, by: DaemonContext.pipelinesPerPause) {
            await context.giveWay(before: begin, Self.startJob)
            let range = begin..<min(begin + DaemonContext.pipelinesPerPause, definitions.count)
            let pipelines = range.map { index -> Subscribed? in
                let definition = definitions[index]
                guard stored.isReadable(definition.name) else { return nil }
                let (lease, network) = subscribe(definition, prepared[index].needs)
                return Subscribed(
                    lease: lease,
                    registration: engine.register(definition, signal: lease.signal, network: network),
                    seed: seeds.next())
            }
            work.add(SubscribedPiece(begin: begin, pipelines: pipelines))
            if definitions.count >= DaemonContext.worthTwoThreads { adding.yield() }
        }
        adding.finish()
        hosted.reserveCapacity(definitions.count)
        overview.reserveCapacity(definitions.count)
        var begin = 0
        while !work.isOver {
            await Task.yield()
            context.loop.nameJob(Self.startJob)
            if let made = work.takeNext() {
                await start(made, definitions, prepared, from: begin)
                begin += made.count
            } else if !work.continueWork() {
                // The worker has the last piece.
                await helping
            }
        }
        await helping
    }

    /// Starts some pipelines, whose runners have been made.
    private func start(
        _ made: [MadeRunner?], _ definitions: [PipelineDefinition], _ prepared: [Preparation], from begin: Int
    ) async {
        // It does not change before the next pause.
        var needsDirectNetworks = networks.needsDirectNetworks
        for (offset, made) in made.enumerated() {
            let definition = definitions[begin + offset]
            guard let made else {
                await host(definition, prepared[begin + offset].needs)
                needsDirectNetworks = networks.needsDirectNetworks
                continue
            }
            engine.start(made.runner, at: made.subscribed.registration)
            hosted[definition.name] = .running(
                RunningPipeline(runner: made.runner, lease: made.subscribed.lease))
            overview.set(made.overview, of: definition.name)
            if needsDirectNetworks {
                made.runner.directNetworksChanged(made.mayBeOnDirectNetwork ? networks.directNetworks.value : nil)
            }
        }
    }

    /// Makes the runners of subscribed pipelines.
    private func runnerWork(
        _ definitions: [PipelineDefinition], _ stored: CacheStore.StoredStates, _ copies: [StoredCopy?]
    ) -> SharedPieces<SubscribedPiece, [MadeRunner?]> {
        let (engine, splay, identity) = (engine, splay, identity)
        let (destinations, handlers) = (logDestinations, eventHandlers)
        return SharedPieces { piece in
            piece.pipelines.enumerated().map { offset, subscribed in
                let definition = definitions[piece.begin + offset]
                guard let subscribed, var state = stored[definition.name] else { return nil }
                copies[piece.begin + offset]?.markCompared(in: &state)
                let sink = PipelineEventSink(PipelineLogger(name: definition.name, destinations), handlers)
                let runner = engine.makeRunner(
                    definition, remembered: state, at: subscribed.registration, splay: splay,
                    share: StableDelay.fraction(identity: identity, name: definition.name), seed: subscribed.seed
                ) { sink.report($0) }
                return MadeRunner(
                    runner: runner, subscribed: subscribed, overview: PipelineOverview.Entry(runner),
                    mayBeOnDirectNetwork: definition.mayBeOnDirectNetwork(subscribed.lease.target))
            }
        }
    }

    /// What the start of the pipelines has used. A worker frees it: with 10,000 pipelines, that takes 30 ms.
    private final class UsedStates: Sendable {
        private let values: Mutex<[any Sendable]>

        init(_ values: any Sendable...) { self.values = Mutex(values) }

        func free() { values.withLock { $0 = [] } }
    }

    /// What the start of a pipeline needs besides its stored state.
    private struct Preparation: Sendable {
        let needs: SignalNeeds
        /// The binding of its copy, if that does not depend on stored parameters.
        private let binding: String?

        init(_ definition: PipelineDefinition, _ needs: SignalNeeds) {
            self.needs = needs
            // A pipeline with mirrors has a binding for each of them.
            binding =
                !needs.hasParameters && definition.mirrors == nil ? definition.validatorBinding() : nil
        }

        /// Whether a copy with this binding was made by the definition.
        func makes(_ stored: String, _ definition: PipelineDefinition, set: [String: String]) -> Bool {
            if let binding { return binding == stored }
            let values = ParameterSettings(remembered: set, for: definition).values(for: definition)
            return definition.makes(stored, with: values)
        }
    }

    /// What the start finds out about a pipeline's copy before the pipeline runs.
    private struct StoredCopy: Sendable {
        /// Whether the current definition made the copy; nil: not known.
        private let isOfDefinition: Bool?
        /// Whether the copy has to be withdrawn, or published again.
        let isOverdue: Bool

        /// Nil if there is no copy.
        init?(
            of definition: PipelineDefinition, _ prepared: Preparation, _ state: PersistentState?, at now: WallTime
        ) {
            guard let state, let generation = state.generation else { return nil }
            isOfDefinition = state.binding.map { prepared.makes($0, definition, set: state.parameters) }
            isOverdue = definition.isWithdrawn(state, at: now) != (generation.withdrawnSince != nil)
        }

        /// The configuration may have got a stricter mode or another group while the daemon did not run.
        var needsAccess: Bool { isOfDefinition != true }

        /// Records the result of the comparison, so that the runner does not compare again.
        func markCompared(in state: inout PersistentState) {
            state.binding = nil
            if isOfDefinition == false { state.isOfOtherConfiguration = true }
        }
    }
}
