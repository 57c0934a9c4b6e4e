import FreshetModel

/// Executes one run: it fetches the sources, transforms, checks and commits.
struct RunExecutor: Sendable {
    var definition: PipelineDefinition {
        didSet { knownBinding = nil }
    }
    var world: EngineDependencies
    /// The values of the pipeline's parameters, the same from the run's start to its end.
    let parameters: ParameterValues
    /// The network epoch of the run.
    let epoch: UInt64
    /// Gets the progress.
    let progress: RunProgress
    /// The seed of random delays.
    let seed: UInt64
    /// Set if the run loads one further page instead of everything.
    var more: More?
    /// How partial results are published; nil: only the complete result is published.
    var publication: Publication?
    /// The copy that the snapshot is compared with; nil: the copy at the time of the check.
    var before: SnapshotChecks.Before?
    /// The rejection of the previous run.
    var rejection: KnownRejection?
    /// Whether there may be a copy; without one there are no validators either.
    var hasCopy = true
    /// Whether all requests are unconditional.
    var isUnconditional = false
    /// The signals that caused the run.
    var causes: [RunCause] = []
    /// The current generation when the run began; nil: there was none.
    var copyBefore: CurrentGeneration?
    /// The pages of earlier runs that were interrupted.
    var interruptedSets: InterruptedSets?
    /// Nil: there are no mirrors.
    var mirrorContext: MirrorContext?
    /// The mirror that is asked now; nil: there are none.
    var mirror: MirrorAttempt?
    /// The binding of `definition` with `parameters`, if it is known.
    var knownBinding: String?

    struct Publication: Sendable {
        /// Whether new content may be published: not while the operator keeps the current copy.
        var isAllowed: @Sendable () -> Bool
        var published: @Sendable (CurrentGeneration) -> Void
    }

    struct More: Hashable, Sendable {
        /// The place of the set of pages.
        var place: [String]
        /// Whether the current copy is truncated.
        var isTruncated: Bool
    }

    /// A check that succeeded.
    struct Success: Hashable, Sendable {
        var changed: Bool
        /// The generation that is published now; nil: it did not change.
        var generation: CurrentGeneration?
        var expiry: DataExpiry?
        /// The sets of pages that may be continued.
        var pages: [PagesState] = []

        init(changed: Bool, generation: CurrentGeneration? = nil, expiry: DataExpiry? = nil) {
            self.changed = changed
            self.generation = generation
            self.expiry = expiry
        }

        init(_ outcome: CommitOutcome, _ expiry: DataExpiry?) {
            self.init(changed: outcome.isChange, generation: outcome.generation, expiry: expiry)
        }
    }

    /// The binding of the validators of this run.
    var binding: String { knownBinding ?? definition.validatorBinding(with: parameters) }

    /// Runs until there is an outcome. A commit that has begun is not cancelled.
    func run() async throws(FetchError) -> Success {
        if let sharing = world.sharing, definition.fleet != nil, more == nil { return try await runShared(sharing) }
        return try await runAtOrigin()
    }

    /// Runs on the content of the origin.
    func runAtOrigin() async throws(FetchError) -> Success {
        guard definition.stage.isSingle else { return try await runOnTree() }
        guard let pages = definition.stage.pages, case .http(let source) = try filledSource() else {
            return try await runOnOneAnswer()
        }
        return try await runOnPages(pages, of: source)
    }

    /// A run whose snapshot consists of the answers to several requests. Each request is conditional by itself; the
    /// commit compares the result.
    private func runOnTree() async throws(FetchError) -> Success {
        var run = self
        // Partial results replace the copy, so the copy for the comparison is measured before.
        if publication != nil, definition.stage.each?.publish == .progressive {
            run.before = .measured(try await checks(definition.check).measure(copy))
        }
        return try await run.runOnMeasuredTree()
    }

    private func runOnMeasuredTree() async throws(FetchError) -> Success {
        let stages = stages
        var success = try await conclude(try await transformed(try await stages.value()), of: stages)
        // The final commit may be unchanged although the run has published a partial result.
        if progress.committed != nil { success.changed = true }
        return success
    }

    /// Publishes a partial result. A result that the transform or the checks reject is not published: the whole may
    /// still pass.
    ///
    /// - Returns: whether readers see it.
    private func show(_ value: [UInt8], _ publication: Publication) async -> Bool {
        guard publication.isAllowed(), let bytes = try? await transformed(value),
            case .success(let contentExpires) = await checkPartial(.bytes(bytes)), !Task.isCancelled
        else { return false }
        let snapshot = Snapshot(
            .bytes(bytes), validators: Validators(), binding: binding,
            truncated: progress.isTruncated, contentExpires: contentExpires, isCheck: false)
        switch try? await world.store.commit(snapshot, of: definition) {
        case .changed(let generation):
            progress.recordCommit(generation.number)
            publication.published(generation)
            return true
        case let outcome?: return !outcome.generation.isBehind
        case nil: return false
        }
    }

    /// Checks a partial result.
    private func checkPartial(_ snapshot: FetchedBody) async -> Result<WallTime?, FetchError> {
        do throws(FetchError) {
            return .success(try await pass(snapshot, isWhole: false))
        } catch {
            return .failure(error)
        }
    }

    private var stages: StageEvaluator {
        var stages = StageEvaluator(
            definition, world, parameters, epoch: epoch, progress: progress, seed: seed, place: more?.place,
            publish: publisher, isUnconditional: isUnconditional)
        stages.interrupted = interruptedSets
        return stages
    }

    private var publisher: StageEvaluator.Publisher? {
        guard let publication else { return nil }
        return { value in await show(value, publication) }
    }

    private func conclude(_ bytes: [UInt8], of stages: StageEvaluator) async throws(FetchError) -> Success {
        var success = try await conclude(.bytes(bytes), Validators())
        // Parts are kept only after a commit: after a rejection the next run requests everything again.
        await stages.parts.keep()
        success.pages = stages.parts.pages
        return success
    }

    /// A run whose snapshot is a set of pages. A set has no validators: all pages are requested, and the commit
    /// compares the result.
    private func runOnPages(_ pages: PagesDefinition, of source: HTTPSource) async throws(FetchError) -> Success {
        let stages = stages
        return try await conclude(try await transformed(try await stages.items(of: pages, source)), of: stages)
    }

    /// A run whose snapshot is one answer, of a mirror if there are several.
    private func runOnOneAnswer() async throws(FetchError) -> Success {
        guard let mirrors = definition.mirrors else { return try await runOnAnswer() }
        return try await runOnMirrors(mirrors)
    }

    /// A run whose snapshot is one answer. An unchanged answer makes no snapshot.
    func runOnAnswer() async throws(FetchError) -> Success {
        let store = world.store
        let binding = binding
        // Otherwise the index need not be read before the source is asked.
        let isConditional = !isUnconditional && definition.source.hasValidators
        let rejection = isConditional ? await currentRejection(of: binding) : nil
        let validators =
            if !isConditional { Validators?.none } else if let rejection { rejection.validators } else if hasCopy {
                await store.validators(definition.name, binding: binding)
            } else { Validators?.none }
        var result = try await fetch(validators)
        if case .notModified(let newer, _) = result, var rejection {
            // Otherwise the operator has accepted the content meanwhile.
            if await currentRejection(of: binding) != nil {
                if let newer { rejection.validators = newer }
                rejection.isConfirmed(at: world.clock.wallNow)
                progress.recordRejected(rejection)
                throw .failed(rejection.failure)
            }
            result = try await fetch(nil)
        } else if case .notModified(let newer, let freshFor) = result, let validators {
            let expiry = expiry(in: freshFor)
            progress.recordConclusion()
            if await store.recordUnchanged(
                definition.name, binding: binding, asked: validators, validators: newer, expires: expiry?.wall)
            {
                guard definition.cache.withdraws else { return Success(changed: false, expiry: expiry) }
                switch await store.putBack(definition) {
                case .done(let shown): return Success(changed: false, generation: shown, expiry: expiry)
                // The check has succeeded; publishing the copy again is retried separately.
                case .failed: return Success(changed: false, expiry: expiry)
                case .nothing, .damaged, .left: break
                }
            }
            // The copy was removed or rolled back while the origin confirmed it, or it cannot be published again.
            result = try await fetch(nil)
        }
        switch result {
        case .notModified:
            throw .failed(.unexpectedNotModified)
        case .content(var content):
            let expiry = expiry(in: content.freshFor)
            do throws(FetchError) {
                // Verified as received, before any program processes it.
                let proofRejection = try await proofRejection(about: content.body)
                mirror?.records.answered()
                if let proofRejection, mirror?.isLast == false { throw .failed(proofRejection) }
                content = try await unpacked(content, despite: proofRejection)
                guard isRead else {
                    return try await conclude(
                        try await snapshot(of: content, despite: proofRejection), content.validators, expiry,
                        despite: proofRejection)
                }
                if let rejection = definition.check.rejection(of: content) {
                    throw .failed(proofRejection ?? rejection)
                }
                return try await reader.read(content.body) { [content] (bytes, world) throws(FetchError) in
                    var (run, content) = (self, content)
                    run.world = world
                    content.body = .bytes(bytes)
                    return try await run.conclude(
                        try await run.snapshot(of: content, despite: proofRejection), content.validators, expiry,
                        despite: proofRejection)
                }
            } catch {
                await content.body.discard()
                throw error
            }
        }
    }

    /// Whether a program may depend on the time, and give another result for the same content later.
    private var dependsOnTime: Bool {
        let programs =
            [definition.transform, definition.stage.transform].compactMap(\.self)
            + definition.cache.files.map(\.program) + definition.check.programs
        return programs.contains { $0.contains("now") }
    }

    /// The rejection, if the binding is still the same and the content is still kept.
    private func currentRejection(of binding: String) async -> KnownRejection? {
        guard let rejection, rejection.binding == binding, await rejection.isKept(of: definition.name, in: world.store)
        else { return nil }
        return rejection
    }

    /// Checks the snapshot and commits it, or keeps it as the rejected candidate.
    ///
    /// - Parameter proofRejection: why the verification has rejected it already.
    func conclude(
        _ body: FetchedBody, _ validators: Validators, _ expiry: DataExpiry? = nil,
        despite proofRejection: RunFailure? = nil
    ) async throws(FetchError) -> Success {
        var snapshot = Snapshot(
            body, validators: validators, binding: binding,
            truncated: progress.isTruncated || more?.isTruncated == true, expires: expiry?.wall, isCheck: more == nil)
        do throws(FetchError) {
            if let proofRejection { throw .failed(proofRejection) }
            snapshot.contentExpires = try await pass(body)
        } catch {
            return Success(try await settle(snapshot, error), expiry)
        }
        if Task.isCancelled { throw .cancelled }
        progress.recordConclusion()
        do throws(RunFailure) {
            return Success(try await world.store.commit(snapshot, of: definition), expiry)
        } catch {
            throw .failed(error)
        }
    }

    /// Handles a rejected snapshot: it fails the run, unless the operator has accepted this content before.
    private func settle(_ snapshot: Snapshot, _ error: FetchError) async throws(FetchError) -> CommitOutcome {
        // A result with one further page is not a state of the source, so it cannot be accepted.
        guard case .failed(var failure) = error, failure.kind == .content, !failure.lacksMemory, snapshot.isCheck,
            !Task.isCancelled
        else {
            throw error
        }
        failure.rejection = failure.rejection ?? .passing
        let reason = world.redact(failure.message)
        progress.recordConclusion()
        let location: KnownRejection.Location
        switch await world.store.storeRejected(snapshot, of: definition, because: reason) {
        case .accepted(let outcome): return outcome
        case .kept(let rejected): location = .aside(rejected)
        case .isCopy(let digest): location = .copy(digest: digest)
        case nil: throw .failed(failure)
        }
        let rejection = KnownRejection(
            location: location, failure: failure, validators: snapshot.validators, binding: snapshot.binding)
        // `Last-Modified` does not identify the rejected content: an older file in its place has an older date.
        let isKnown = failure.rejection == .lasting && snapshot.validators.entityTag != nil && !dependsOnTime
        progress.recordRejected(rejection, isKnown: isKnown)
        throw .failed(failure)
    }

    /// When the data stops being fresh, as its origin states, if the configuration honours that.
    private func expiry(in freshFor: Duration?) -> DataExpiry? {
        guard definition.refresh.honoursOrigin, let freshFor else { return nil }
        return DataExpiry(in: freshFor, world.clock)
    }

    private func fetch(_ validators: Validators?) async throws(FetchError) -> FetchResult {
        if Task.isCancelled { throw .cancelled }
        let rules = definition.check
        var request = FetchRequest(
            source: try filledSource(), validators: validators, maxBytes: rules.maxBytes, epoch: epoch,
            progress: progress.track(), announced: { [progress] in progress.announce($0) },
            asked: { [progress] in progress.countRequest() }, bodyStore: bodyStore)
        request.isProven = rules.hasProofs
        request.isConfiguredURL = definition.source.hasConfiguredURL
        request.coding = definition.stage.unpack.coding
        if !rules.types.isEmpty { request.rejection = { rules.rejection(ofType: $0) } }
        if let stopwatch = mirror?.stopwatch {
            request.asked = { [progress] in
                progress.countRequest()
                stopwatch.start()
            }
            request.progress = { [track = request.progress] bytes in
                stopwatch.stop()
                track(bytes)
            }
        }
        let result = try await world.fetcher.fetch(request)
        mirror?.stopwatch.stop()
        return result
    }

    /// The store for a long answer. If no program reads its bytes, the answer becomes the snapshot unchanged.
    var bodyStore: (any BodyStoring)? {
        isRead ? reader.bodyStore : world.store.bodyStore(of: definition)
    }

    /// Whether programs read the answer, so that its bytes must be in memory.
    var isRead: Bool {
        definition.transform != nil || definition.template != nil || !definition.cache.files.isEmpty
            || definition.check.readsContent
    }

    var reader: ContentReader { ContentReader(world: world, definition: definition) }

    /// The source with the parameters' values.
    private func filledSource() throws(FetchError) -> SourceDefinition { try filled(definition.source) }

    /// A source with the parameters' values.
    func filled(_ source: SourceDefinition) throws(FetchError) -> SourceDefinition {
        do throws(RunFailure) {
            return try source.filled(parameters.value)
        } catch {
            throw .failed(error)
        }
    }

    /// Unpacks the answer, if that is configured. If the verification has rejected the answer, that is the reported
    /// failure.
    private func unpacked(
        _ content: FetchedContent, despite proofRejection: RunFailure?
    ) async throws(FetchError) -> FetchedContent {
        guard let rule = definition.stage.unpack else { return content }
        do throws(FetchError) {
            if let rejection = definition.check.rejection(of: content) { throw .failed(rejection) }
            return try await world.unpacked(
                content, by: rule, maxBytes: definition.check.maxBytes, bodyStore: bodyStore)
        } catch {
            guard let proofRejection, error != .cancelled else { throw error }
            throw .failed(proofRejection)
        }
    }

    /// Makes the snapshot from the answer. If the verification has rejected the answer, that is the reported failure.
    private func snapshot(
        of content: FetchedContent, despite proofRejection: RunFailure?
    ) async throws(FetchError) -> FetchedBody {
        do throws(FetchError) {
            return try await snapshot(of: content)
        } catch {
            guard let proofRejection, error != .cancelled else { throw error }
            throw .failed(proofRejection)
        }
    }

    private func snapshot(of content: FetchedContent) async throws(FetchError) -> FetchedBody {
        let rules = definition.check
        if let rejection = rules.rejection(of: content) { throw .failed(rejection) }
        switch content.body {
        case .bytes(let bytes):
            return .bytes(try await transformed(bytes, from: definition.stage.format))
        case .kept: return content.body
        }
    }

    /// Makes the snapshot from the data. Without a program the data stays unchanged.
    private func transformed(_ data: [UInt8], from form: ContentFormat = .json) async throws(FetchError) -> [UInt8] {
        var bytes = data
        // Data from several requests is JSON, whatever the cache's format is.
        let isJSON = !definition.stage.isSingle || definition.stage.pages != nil
        let format = definition.cache.format
        if let template = definition.template {
            if let program = definition.transform {
                bytes = try await world.transformer.content(of: bytes, in: form, by: program, as: .json)
            }
            return try await world.transformer.render(bytes, by: template)
        }
        if let program = definition.transform ?? (isJSON && format == .text ? "." : nil) {
            bytes = try await world.transformer.content(of: bytes, in: form, by: program, as: format)
        }
        let files = definition.cache.files
        if files.isEmpty { return bytes }
        return try await world.transformer.split(bytes, in: definition.transform == nil ? form : .json, into: files)
    }

    /// Runs all checks.
    ///
    /// - - Parameter isWhole: false for a partial result. A partial list must not be smaller than the copy at all: the
    ///   size of the rest is not known, and if this run fails, the next run is compared with the partial list.
    ///
    /// - Returns: as ``SnapshotChecks/pass(_:instead:)``.
    private func pass(_ snapshot: FetchedBody, isWhole: Bool = true) async throws(FetchError) -> WallTime? {
        var rules = definition.check
        if !isWhole, rules.shrink != nil { rules.shrink = 0 }
        let expiry = try await checks(rules).pass(snapshot, instead: before ?? .copy(copy)).map(
            WallTime.init(microseconds:))
        guard let rule = rules.exec else { return expiry }
        guard let inspector = world.helpers.inspector else { throw .failed(.cannotCheck("check.exec")) }
        do throws(FetchError) {
            try await inspector.inspect(snapshot, of: definition, by: rule)
        } catch {
            throw error.of("check.exec")
        }
        return expiry
    }

    private func checks(_ rules: CheckRules) -> SnapshotChecks {
        SnapshotChecks(rules, of: definition.cache.format, world.transformer, at: world.clock.wallNow.microseconds)
    }

    private var copy: SnapshotChecks.Copy {
        SnapshotChecks.Copy {
            (await world.store.remembered(definition.name).generation?.size).map { Int(clamping: $0) }
        } content: { () async throws(FetchError) in
            do throws(RunFailure) {
                return try await world.store.copy(of: definition)
            } catch {
                throw .failed(error)
            }
        }
    }
}

extension FetchedContent {
    /// The body of an answer that must be in memory.
    var bytes: [UInt8] {
        get throws(FetchError) {
            guard case .bytes(let bytes) = body else {
                throw .failed(RunFailure(.local, "the answer was stored on disk, but is needed in memory"))
            }
            return bytes
        }
    }
}

extension RunFailure {
    /// A 304 answer to an unconditional request.
    static let unexpectedNotModified = RunFailure(
        .content, "the origin answered 304 (Not Modified) to an unconditional request")
}
