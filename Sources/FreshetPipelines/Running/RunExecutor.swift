/// What a run does: ask the sources, transform, check, commit.
struct RunExecutor: Sendable {
    let definition: PipelineDefinition
    var world: EngineDependencies
    /// The values of the pipeline's parameters, the same from the run's start to its end.
    let parameters: ParameterValues
    /// The network epoch of the run.
    let epoch: UInt64
    /// Told how far it has come.
    let progress: RunProgress
    /// For what is left to chance.
    let seed: UInt64
    /// One further page is asked for, instead of everything.
    var more: More?
    /// What is to become of a copy that is not whole yet; nil: nothing is shown before it is.
    var publication: Publication?
    /// What the snapshot is compared with; nil: the copy as it is then.
    var before: SnapshotChecks.Before?
    /// What a check refused in the run before.
    var refusal: KnownRejection?
    /// No request is conditional.
    var isUnconditional = false

    struct Publication: Sendable {
        /// Whether readers may be given something new: not while the operator keeps them at what they have.
        var isWanted: @Sendable () -> Bool
        var published: @Sendable (CurrentGeneration) -> Void
    }

    struct More: Hashable, Sendable {
        /// Where.
        var place: [String]
        /// The copy as it is lacks something.
        var isTruncated: Bool
    }

    /// A check that succeeded.
    struct Success: Hashable, Sendable {
        var changed: Bool
        /// What readers see now; nil: what they saw before.
        var generation: CurrentGeneration?
        var expiry: DataExpiry?
        /// Its sets of pages that may be continued.
        var pages: [PagesState] = []

        init(changed: Bool, generation: CurrentGeneration? = nil, expiry: DataExpiry? = nil) {
            self.changed = changed
            self.generation = generation
            self.expiry = expiry
        }

        init(_ result: CommitResult, _ expiry: DataExpiry?) {
            switch result {
            case .changed(let generation): self.init(changed: true, generation: generation, expiry: expiry)
            case .unchanged(let generation): self.init(changed: false, generation: generation, expiry: expiry)
            }
        }
    }

    /// Runs until it has an outcome. A commit that has begun is not cancelled.
    func run() async throws(FetchError) -> Success {
        guard definition.stage.isSingle else { return try await runOnTree() }
        guard let pages = definition.stage.pages, case .http(let source) = try filledSource() else {
            return try await runOnOneAnswer()
        }
        return try await runOnPages(pages, of: source)
    }

    /// The snapshot is put together from the answers to many requests. Each of them is conditional by itself; what they
    /// come to is compared when it is committed.
    private func runOnTree() async throws(FetchError) -> Success {
        var run = self
        // What is shown on the way becomes the copy, and nobody has judged it as a whole.
        if publication != nil, definition.stage.each?.publish == .progressive {
            run.before = .measured(try await checks(definition.check).measure(copy))
        }
        return try await run.runOnMeasuredTree()
    }

    private func runOnMeasuredTree() async throws(FetchError) -> Success {
        let stages = stages
        var success = try await conclude(try await transformed(try await stages.value()), of: stages)
        // Nothing may be left to change at the end, and the run has changed what readers see all the same.
        if progress.publications > 0 { success.changed = true }
        return success
    }

    /// Shows readers what there is so far. What the transform or the checks refuse is not shown: the whole may pass.
    ///
    /// - Returns: whether they see it.
    private func show(_ value: [UInt8], _ publication: Publication) async -> Bool {
        guard publication.isWanted(), let bytes = try? await transformed(value),
            case .success(let contentExpires) = await judged(.bytes(bytes)), !Task.isCancelled
        else { return false }
        let snapshot = Snapshot(
            .bytes(bytes), validators: Validators(), binding: definition.validatorBinding(with: parameters),
            truncated: progress.isTruncated, contentExpires: contentExpires, isCheck: false)
        switch try? await world.store.commit(snapshot, of: definition) {
        case .changed(let generation):
            progress.notePublication()
            publication.published(generation)
            return true
        case .unchanged(let generation): return !generation.isBehind
        case nil: return false
        }
    }

    /// What the checks say of a copy that is not whole yet.
    private func judged(_ snapshot: FetchedBody) async -> Result<Int64?, FetchError> {
        do throws(FetchError) {
            return .success(try await pass(snapshot, isWhole: false))
        } catch {
            return .failure(error)
        }
    }

    private var stages: StageEvaluator {
        StageEvaluator(
            definition, world, parameters, epoch: epoch, progress: progress, seed: seed, place: more?.place,
            publish: publisher, isUnconditional: isUnconditional)
    }

    private var publisher: StageEvaluator.Publisher? {
        guard let publication else { return nil }
        return { value in await show(value, publication) }
    }

    private func conclude(_ bytes: [UInt8], of stages: StageEvaluator) async throws(FetchError) -> Success {
        var success = try await conclude(.bytes(bytes), Validators())
        // Only what became a copy: a run that was refused asks for everything again.
        await stages.parts.keep()
        success.pages = stages.parts.pages
        return success
    }

    /// The snapshot is made of a set of pages. It has no validators as a whole: all of it is asked for, and compared when
    /// it is committed.
    private func runOnPages(_ pages: PagesDefinition, of source: HTTPSource) async throws(FetchError) -> Success {
        let stages = stages
        return try await conclude(try await transformed(try await stages.items(of: pages, source)), of: stages)
    }

    /// The snapshot is made of one answer. If that is still the one before, nothing is made.
    private func runOnOneAnswer() async throws(FetchError) -> Success {
        let store = world.store
        let binding = definition.validatorBinding(with: parameters)
        let refusal = isUnconditional ? nil : await standingRefusal(of: binding)
        let validators =
            if isUnconditional { Validators?.none } else if let refusal { refusal.validators } else {
                await store.validators(definition.name, binding: binding)
            }
        var result = try await fetch(validators)
        if case .notModified(let newer, _) = result, var refusal {
            // Else it was accepted meanwhile.
            if await standingRefusal(of: binding) != nil {
                if let newer { refusal.validators = newer }
                refusal.isConfirmed(at: world.clock.wallNow)
                progress.noteRefused(refusal)
                throw .failed(refusal.failure)
            }
            result = try await fetch(nil)
        } else if case .notModified(let newer, let freshFor) = result, let validators {
            let expiry = expiry(in: freshFor)
            progress.noteConclusion()
            if await store.recordUnchanged(
                definition.name, binding: binding, asked: validators, validators: newer, expires: expiry?.wall)
            {
                guard definition.cache.withdraws else { return Success(changed: false, expiry: expiry) }
                switch await store.putBack(definition) {
                case .done(let shown): return Success(changed: false, generation: shown, expiry: expiry)
                // The check has succeeded; what keeps the copy from readers is tried again by itself.
                case .failed: return Success(changed: false, expiry: expiry)
                case .nothing, .damaged, .left: break
                }
            }
            // Somebody removed the copy while the origin confirmed it, or rolled it back; or it could not be put back.
            result = try await fetch(nil)
        }
        switch result {
        case .notModified:
            throw .failed(.unaskedNotModified)
        case .content(let content):
            let expiry = expiry(in: content.freshFor)
            do throws(FetchError) {
                // Before any program sees it.
                let doubt = try await doubt(about: content.body)
                guard isRead else {
                    return try await conclude(
                        try await snapshot(of: content, despite: doubt), content.validators, expiry, despite: doubt)
                }
                if let refusal = definition.check.refusal(of: content) { throw .failed(doubt ?? refusal) }
                return try await reader.read(content.body) { (bytes, world) throws(FetchError) in
                    var (run, content) = (self, content)
                    run.world = world
                    content.body = .bytes(bytes)
                    return try await run.conclude(
                        try await run.snapshot(of: content, despite: doubt), content.validators, expiry, despite: doubt)
                }
            } catch {
                await content.body.discard()
                throw error
            }
        }
    }

    /// A program may look at the time, and say something else of the same content later.
    private var dependsOnTime: Bool {
        let programs =
            [definition.transform, definition.stage.transform].compactMap(\.self)
            + definition.cache.files.map(\.program) + definition.check.programs
        return programs.contains { $0.contains("now") }
    }

    /// What was refused, if it is asked for with the same words now, and is there still.
    private func standingRefusal(of binding: String) async -> KnownRejection? {
        guard let refusal, refusal.binding == binding, await refusal.isKept(of: definition.name, in: world.store)
        else { return nil }
        return refusal
    }

    /// Checks the snapshot and makes it the copy, or keeps it aside for a look.
    ///
    /// - Parameter doubt: why it is refused already.
    private func conclude(
        _ body: FetchedBody, _ validators: Validators, _ expiry: DataExpiry? = nil, despite doubt: RunFailure? = nil
    ) async throws(FetchError) -> Success {
        var snapshot = Snapshot(
            body, validators: validators, binding: definition.validatorBinding(with: parameters),
            truncated: progress.isTruncated || more?.isTruncated == true, expires: expiry?.wall, isCheck: more == nil)
        do throws(FetchError) {
            if let doubt { throw .failed(doubt) }
            snapshot.contentExpires = try await pass(body)
        } catch {
            return Success(try await settle(snapshot, error), expiry)
        }
        if Task.isCancelled { throw .cancelled }
        progress.noteConclusion()
        do throws(RunFailure) {
            return Success(try await world.store.commit(snapshot, of: definition), expiry)
        } catch {
            throw .failed(error)
        }
    }

    /// What becomes of a snapshot that was refused: it fails the run, unless the operator has accepted it before.
    private func settle(_ snapshot: Snapshot, _ error: FetchError) async throws(FetchError) -> CommitResult {
        // With one further page it is no state of the source that anybody could accept.
        guard case .failed(var failure) = error, failure.kind == .content, !failure.lacksMemory, snapshot.isCheck,
            !Task.isCancelled
        else {
            throw error
        }
        failure.refusal = failure.refusal ?? .passing
        let reason = world.redact(failure.message)
        progress.noteConclusion()
        let place: KnownRejection.Place
        switch await world.store.setAside(snapshot, of: definition, because: reason) {
        case .committed(let result): return result
        case .kept(let refused): place = .aside(refused)
        case .isCopy(let digest): place = .copy(digest: digest)
        case .dropped: throw .failed(failure)
        }
        let refusal = KnownRejection(
            place: place, failure: failure, validators: snapshot.validators, binding: snapshot.binding)
        // A date is none of what was refused alone: an older file in its place has an older one.
        let isKnown = failure.refusal == .lasting && snapshot.validators.entityTag != nil && !dependsOnTime
        progress.noteRefused(refusal, isKnown: isKnown)
        throw .failed(failure)
    }

    /// When the data stops being fresh by its origin's word, if the configuration listens to that.
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
            asked: { [progress] in progress.countRequest() }, keeper: keeper)
        request.isProven = rules.hasProofs
        if !rules.types.isEmpty { request.refusal = { rules.refusal(ofType: $0) } }
        return try await world.fetcher.fetch(request)
    }

    /// Where the answer goes if it is long. If nobody has to look at its bytes, it becomes the snapshot as it is.
    private var keeper: (any BodyStoring)? {
        isRead ? reader.keeper : world.store.keeper(of: definition)
    }

    /// Programs look at the answer, so that its bytes are needed in memory.
    private var isRead: Bool {
        definition.transform != nil || !definition.cache.files.isEmpty || definition.check.readsContent
    }

    private var reader: ContentReader { ContentReader(world: world, definition: definition) }

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

    /// The snapshot that the answer becomes. Of one that is refused already nothing else is told.
    private func snapshot(
        of content: FetchedContent, despite doubt: RunFailure?
    ) async throws(FetchError) -> FetchedBody {
        do throws(FetchError) {
            return try await snapshot(of: content)
        } catch {
            guard let doubt, error != .cancelled else { throw error }
            throw .failed(doubt)
        }
    }

    private func snapshot(of content: FetchedContent) async throws(FetchError) -> FetchedBody {
        let rules = definition.check
        if let refusal = rules.refusal(of: content) { throw .failed(refusal) }
        switch content.body {
        case .bytes(let bytes):
            return .bytes(try await transformed(bytes, from: definition.stage.format))
        case .kept: return content.body
        }
    }

    /// The snapshot that the data becomes. Without a program nobody reads it, and it stays as it is.
    private func transformed(_ data: [UInt8], from form: ContentFormat = .json) async throws(FetchError) -> [UInt8] {
        var bytes = data
        // What was put together is JSON, whatever it is to become.
        let isJSON = !definition.stage.isSingle || definition.stage.pages != nil
        let format = definition.cache.format
        if let program = definition.transform ?? (isJSON && format == .text ? "." : nil) {
            bytes = try await world.transformer.content(of: bytes, in: form, by: program, as: format)
        }
        let files = definition.cache.files
        if files.isEmpty { return bytes }
        return try await world.transformer.split(bytes, in: definition.transform == nil ? form : .json, into: files)
    }

    /// - Parameter isWhole: not all of it is in if not. Such a list may not be smaller than the copy at all: what the rest of
    ///   it will be is not known, and what is shown is what the next run is compared with if this one comes to nothing.
    ///
    /// - Returns: as of ``SnapshotChecks/pass(_:instead:)``.
    private func pass(_ snapshot: FetchedBody, isWhole: Bool = true) async throws(FetchError) -> Int64? {
        var rules = definition.check
        if !isWhole, rules.shrink != nil { rules.shrink = 0 }
        let expiry = try await checks(rules).pass(snapshot, instead: before ?? .copy(copy))
        guard let rule = rules.exec else { return expiry }
        guard let inspector = world.helpers.inspector else { throw .failed(.noHelper) }
        do throws(FetchError) {
            try await inspector.inspect(snapshot, of: definition, by: rule)
        } catch {
            throw error.of("check.exec")
        }
        return expiry
    }

    private func checks(_ rules: CheckRules) -> SnapshotChecks {
        SnapshotChecks(rules, of: definition.cache.format, world.transformer, at: world.clock.wallNow)
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
    /// The body of an answer that was not to be kept aside.
    var bytes: [UInt8] {
        get throws(FetchError) {
            guard case .bytes(let bytes) = body else {
                throw .failed(RunFailure(.local, "the answer was kept aside, and is needed in memory"))
            }
            return bytes
        }
    }
}

extension RunFailure {
    /// An answer that makes no sense without the question.
    static let unaskedNotModified = RunFailure(
        .content, "the origin says that nothing changed (304), but was not asked whether")
}
