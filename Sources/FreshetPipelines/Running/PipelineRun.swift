import FreshetModel
internal import FreshetSignals

/// One run of a pipeline: it executes the run, and records for the runner what the run has found. Its end is an event
/// for the machine.
struct PipelineRun: Sendable {
    private let runner: PipelineRunner
    private let order: RunOrder
    private let body: RunExecutor
    private let permits: RunPermits
    /// Happens to end the run.
    private let interruption = OneTimeEvent()

    /// Begins the run.
    ///
    /// - Parameters:
    ///   - first: the run's first permit, which may be needed only for its first request.
    ///   - seed: the seed of random delays.
    init(_ order: RunOrder, of runner: PipelineRunner, beginningWith first: NextPermit.Permit?, seed: UInt64) {
        self.runner = runner
        self.order = order
        let progress = RunProgress(allowance: order.allowance)
        let permits = RunPermits(
            runner.world.requestLimiter, for: runner.mailbox.key, beginningWith: first?.ticket, at: first?.origin,
            stalls: { [mailbox = runner.mailbox] in mailbox.post(.stalled(run: order.run, $0)) })
        self.permits = permits
        let (definition, binding, copy, runs, share) = runner.state.withLock { [interruption] state in
            state.runs.began(progress, permits, interruption, of: state.configuration.definition)
            return (
                state.configuration.definition, state.configuration.binding(), state.copy, state.runs,
                state.machine.settings.share
            )
        }
        var more: RunExecutor.More?
        if case .loadMore(let place) = order.reason {
            more = RunExecutor.More(place: place, isTruncated: copy.generation?.truncated ?? false)
        }
        // Partial results are published, unless the run is for a further page.
        let publication = RunExecutor.Publication(
            isAllowed: { runner.state.withLock { $0.copy.isReplaceable } },
            published: { generation in runner.state.withLock { $0.copy.record(generation) } })
        var body = RunExecutor(
            definition: definition, world: runner.world.with(permits), parameters: order.parameters,
            epoch: order.epoch, progress: progress, seed: seed, more: more,
            publication: more == nil ? publication : nil)
        body.mirrorContext = runs.mirrors.map {
            RunExecutor.MirrorContext(records: $0, share: share, isForced: order.reason == .forced)
        }
        body.knownBinding = binding
        // All pages of an unconditional run are new.
        if order.isUnconditional { runs.interruptedSets?.removeAll() }
        body.interruptedSets = runs.interruptedSets
        body.rejection = copy.rejection
        body.hasCopy = copy.generation != nil
        body.isUnconditional = order.isUnconditional
        (body.causes, body.copyBefore) = (order.causes, copy.generation)
        self.body = body
    }

    private var world: EngineDependencies { runner.world }

    /// Executes the run to its end. Cancel the task, or interrupt the run, to end it early.
    func execute() async {
        let result = await interruptible(by: interruption, otherwise: .cancelled) { await self.result() }
        // If the configuration was replaced during the run, the committed file gets the new mode and group.
        let definition = runner.definition
        if definition.cache != body.definition.cache { await world.store.setAccess(definition) }
        // One that succeeded has looked.
        if case .succeeded = result {} else if hasCopy { await runner.restorer.restore() }
        permits.close()
        end(result)
    }

    private var hasCopy: Bool { runner.state.withLock { $0.copy.generation != nil } }

    /// Reports the result, unless an operator has accepted the content that the run rejected: then the run has
    /// confirmed the copy.
    private func end(_ result: RunResult) {
        let (now, wallNow) = (world.clock.now, world.clock.wallNow)
        // Posted while the lock is held: an acceptance comes to the machine before this result and is seen here, or
        // after it.
        runner.state.withLock { state in
            var result = result
            if case .failed = result, let rejected = body.progress.rejected?.snapshot,
                let copy = state.copy.confirm(rejected, at: wallNow)
            {
                result = .succeeded(changed: false, generation: copy.number, at: now, flaw: nil, expires: nil)
            }
            runner.mailbox.post(.ended(run: order.run, result, requests: body.progress.requests))
        }
    }

    private func result() async -> RunResult {
        do throws(FetchError) {
            let success = try await body.run()
            if success.changed, let generation = success.generation { body.progress.recordCommit(generation.number) }
            if let comment = body.progress.signedComment { await signed(comment, success) }
            let wallNow = world.clock.wallNow
            let now = world.clock.now
            let failures = body.progress.failures.map(redacted)
            let (generation, flaw) = runner.state.withLock { state in
                // The source has other content now; a further page says nothing about that.
                if body.more == nil { state.copy.forgetRejection() }
                state.copy.record(success.generation)
                state.runs.loaded(success.pages)
                // A run for a further page makes no other request.
                guard body.more == nil else { return (state.copy.generation?.number, RunFailure?.none) }
                let flaw = state.runs.record(failures, of: body.progress.loaded.branches, at: now)
                if flaw == nil { state.copy.lastCheck = wallNow }
                return (state.copy.generation?.number, flaw)
            }
            return .succeeded(
                changed: success.changed, generation: generation, at: now, flaw: flaw, expires: success.expiry?.instant)
        } catch {
            if let rejected = body.progress.rejected {
                runner.state.withLock { $0.copy.record(rejected, by: order.run) }
            }
            switch error {
            case .cancelled: return .cancelled
            case .failed(var failure):
                failure.message = world.redact(failure.message)
                if body.progress.committed != nil { failure.message += "; the partial result is published" }
                return .failed(failure)
            }
        }
    }

    /// Stores the publisher's trusted comment about the copy.
    private func signed(_ comment: String, _ success: RunExecutor.Success) async {
        if success.changed { runner.report(.signed(comment: comment)) }
        // If other content is held back, the comment is about that content.
        guard let generation = success.generation, success.changed || !generation.isBehind else { return }
        let signed = SignedComment(digest: generation.digest, comment: comment)
        let isNew = runner.state.withLock { $0.copy.record(signed) }
        if isNew { await world.store.rememberSigned(runner.name, signed) }
    }

    private func redacted(_ branch: BranchFailure) -> BranchFailure {
        var branch = branch
        branch.failure.message = world.redact(branch.failure.message)
        return branch
    }
}
