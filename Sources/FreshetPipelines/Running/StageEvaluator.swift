import FreshetModel
internal import FreshetSignals

/// Evaluates the tree of a pipeline's stages: fetches the source of each stage, once for every item of the fan-outs
/// around it, and assembles the answers to one JSON text.
///
/// Bodies are untrusted and are handled as bytes; only the jq helper parses them.
struct StageEvaluator: Sendable {
    let definition: PipelineDefinition
    let world: EngineDependencies
    let parameters: ParameterValues
    /// The network epoch of the run.
    let epoch: UInt64
    let progress: RunProgress
    /// The seed of random delays.
    let seed: UInt64
    /// The place where one further page is loaded; all other parts keep their values. Nil: everything is fetched.
    let place: [String]?
    let parts: PartCache
    /// The limit on the total size of the kept pages.
    private let keptItems: ByteBudget
    /// Publishes partial results; nil: only the complete result is published.
    let publish: Publisher?
    /// Whether all requests are unconditional and all sets of pages begin with the first page.
    let isUnconditional: Bool
    /// The pages of loads that were interrupted; nil: all sets begin with the first page.
    var interrupted: InterruptedSets?

    /// Publishes a value. Returns whether readers see it.
    typealias Publisher = @Sendable ([UInt8]) async -> Bool

    init(
        _ definition: PipelineDefinition, _ world: EngineDependencies, _ parameters: ParameterValues, epoch: UInt64,
        progress: RunProgress, seed: UInt64, place: [String]? = nil,
        publish: Publisher? = nil, isUnconditional: Bool = false
    ) {
        self.isUnconditional = isUnconditional
        self.place = place
        self.publish = publish
        keptItems = ByteBudget(
            definition.check.maxBytes, of: "the items of pages that are kept for further ones together have")
        self.definition = definition
        self.world = world
        self.parameters = parameters
        self.epoch = epoch
        self.progress = progress
        self.seed = seed
        parts = PartCache(of: definition, with: parameters, in: world.store)
    }

    /// The value of the whole tree: one JSON text.
    func value() async throws(FetchError) -> [UInt8] {
        try await value(of: definition.stage, in: EvaluationContext()).json
    }

    /// A stage's value, its request, and why it is not new.
    struct Value: Hashable, Sendable {
        var json: [UInt8]
        /// The request that the value answers; nil: it is from no origin, or an earlier value of another request.
        var origin: HTTPSource?
        /// The part that is stored for the next run.
        var part: PartCache.Use?
        /// The failure of the source, if this is the earlier value.
        var staleness: RunFailure?
    }

    func value(
        of stage: StageDefinition, in scope: EvaluationContext, onError: EachDefinition.OnError = .fail
    ) async throws(FetchError) -> Value {
        var value: Value
        if case .joined(let sources) = stage.source {
            value = try await joined(sources, by: stage.transform, in: scope)
        } else {
            value = try await once(stage, in: scope) { () throws(FetchError) in
                try await data(of: stage, in: scope, onError: onError)
            }
        }
        if let part = value.part { parts.use(part, at: scope.path) }
        guard let each = stage.each else { return value }
        let items = try await each.items(of: value.json, by: world.transformer, with: scope.variables)
        value.json = try await branches(items, of: each, from: value.origin, in: scope)
        return value
    }

    // MARK: Several sources

    /// The most reads of joined sources until their copies are consistent.
    private static let readings = 5

    /// The data of joined sources. The copies of other pipelines among them are consistent: none was replaced while
    /// another one was read.
    private func joined(
        _ sources: [JoinedSource], by program: String?, in scope: EvaluationContext
    ) async throws(FetchError) -> Value {
        // One copy alone is always consistent.
        guard scope.reading != nil || sources.reduce(0, { $0 + $1.stage.copyReadings }) > 1 else {
            return try await joinedOnce(sources, by: program, in: scope)
        }
        let reading = ConsistentRead(within: scope.reading)
        var inner = scope
        inner.reading = reading
        for _ in 0..<Self.readings {
            let value = try await joinedOnce(sources, by: program, in: inner)
            let copies = reading.copies
            let isOfOneMoment = copies.count < 2 ? true : try await areUnchanged(copies)
            if isOfOneMoment {
                reading.finish()
                return value
            }
            let counted = reading.restart()
            parts.restart(below: scope.path)
            progress.restart(below: scope.path, expected: counted.expected, ended: counted.ended)
        }
        throw .failed(
            RunFailure(
                .local,
                "the joined copies of other pipelines changed during each of \(Self.readings) attempts to read them "
                    + "together; refresh these pipelines less often"))
    }

    private func areUnchanged(_ copies: [ConsistentRead.Copy]) async throws(FetchError) -> Bool {
        for copy in copies {
            let result = try await fetch(copy.source, copy.validators)
            if case .content(let content) = result { await content.body.discard() }
            guard case .notModified = result else { return false }
        }
        return true
    }

    /// The result of a stage's source, success or failure, reused if a joined stage around it has read it already. A
    /// copy is read each time.
    private func once(
        _ stage: StageDefinition, in scope: EvaluationContext, _ load: () async throws(FetchError) -> Value
    ) async throws(FetchError) -> Value {
        guard let reading = scope.reading, let source = try? filled(stage.source, in: scope) else {
            return try await load()
        }
        if case .copy = source { return try await load() }
        let question = "\(scope.path) \(scope.binding(of: stage, asking: source, accepting: definition.check.types))"
        switch reading.answer(to: question) {
        case .value(let value): return value
        case .failed(let failure): throw .failed(failure)
        case nil: break
        }
        do throws(FetchError) {
            let value = try await load()
            reading.remember(.value(value), to: question)
            return value
        } catch {
            if case .failed(let failure) = error { reading.remember(.failed(failure), to: question) }
            throw error
        }
    }

    /// Reads the sources once: an object with a member for each source.
    private func joinedOnce(
        _ sources: [JoinedSource], by program: String?, in scope: EvaluationContext
    ) async throws(FetchError) -> Value {
        let members = sources.map { source in
            Emitter<[UInt8], FetchError>.once { () throws(FetchError) in
                var inner = scope
                inner.path.append(source.name)
                inner.branch = nil
                do throws(FetchError) {
                    return try await self.value(of: source.stage, in: inner).json
                } catch {
                    throw error.of("source '\(source.name)'")
                }
            }
        }
        var values: [[UInt8]]?
        for try await row in accumulateLatestMany(members) { values = row }
        guard let values, values.count == sources.count, !Task.isCancelled else { throw .cancelled }
        var object = Array("{".utf8)
        for (source, value) in zip(sources, values) {
            if object.count > 1 { object.append(UInt8(ascii: ",")) }
            object += Array("\"\(source.name)\":".utf8) + value
        }
        object.append(UInt8(ascii: "}"))
        guard let program else { return Value(json: object) }
        return Value(json: try await evaluate(program, over: object, in: scope))
    }

    // MARK: One source

    /// The data of a stage's source, after its transform.
    private func data(
        of stage: StageDefinition, in scope: EvaluationContext, onError: EachDefinition.OnError
    ) async throws(FetchError) -> Value {
        let before = await part(in: scope)
        if let place { return try await data(of: stage, in: scope, at: place, before) }
        do throws(FetchError) {
            let source = try filled(stage.source, in: scope)
            let binding = scope.binding(of: stage, asking: source, accepting: definition.check.types)
            if let pages = stage.pages, case .http(let source) = source {
                let set = try await loadPages(
                    pages, of: source, with: scope.variables, after: synchronized(before, binding),
                    seed: scope.seed(from: seed), key: "\(scope.path) \(binding)")
                return try await value(of: set, of: pages, stage, asking: .http(source), binding, in: scope)
            }
            let known = isUnconditional ? nil : before.flatMap { $0.binding == binding ? $0 : nil }
            switch try await fetch(source, known?.validators, stage.unpack.coding) {
            case .notModified(let newer, _):
                guard var part = known else { throw .failed(RunFailure.unexpectedNotModified) }
                let isNewer = newer.map { $0 != part.validators } ?? false
                if let newer { part.validators = newer }
                recordCopy(source, part.validators, in: scope)
                return Value(json: part.value, origin: source.request, part: .init(part, isNew: isNewer))
            case .content(let content):
                recordCopy(source, content.validators, in: scope)
                let part = StoredPart(
                    binding: binding, validators: content.validators,
                    value: try await json(of: content, by: stage, in: scope))
                return Value(json: part.value, origin: source.request, part: .init(part, isNew: true))
            }
        } catch {
            guard case .failed(let failure) = error, onError == .previous, failure.isOfOneBranch, var before else {
                throw error
            }
            // The next attempt must be unconditional too.
            let forgets = isUnconditional && !before.validators.isEmpty
            if forgets { before.validators = Validators() }
            var value = kept(before, of: stage, in: scope, isNew: forgets)
            value.staleness = failure
            return value
        }
    }

    /// The earlier value of the source; at the requested place, with one further page.
    private func data(
        of stage: StageDefinition, in scope: EvaluationContext, at place: [String], _ before: StoredPart?
    ) async throws(FetchError) -> Value {
        guard let before else { throw .failed(.noPart) }
        guard scope.path == place, let pages = stage.pages, before.pages?.next != nil else {
            return kept(before, of: stage, in: scope)
        }
        let source = try filled(stage.source, in: scope)
        let binding = scope.binding(of: stage, asking: source, accepting: definition.check.types)
        let set = try await continued(before, pages, of: source, binding, in: scope)
        return try await value(of: set, of: pages, stage, asking: source, binding, in: scope)
    }

    /// The earlier value of the source. Its origin is known only if the request is still the same.
    private func kept(
        _ part: StoredPart, of stage: StageDefinition, in scope: EvaluationContext, isNew: Bool = false
    ) -> Value {
        var value = Value(json: part.value, part: .init(part, isNew: isNew))
        if stage.each != nil, let source = try? filled(stage.source, in: scope),
            part.binding == scope.binding(of: stage, asking: source, accepting: definition.check.types)
        {
            value.origin = source.request
        }
        return value
    }

    /// Loads one further page of a set.
    private func continued(
        _ part: StoredPart, _ pages: PagesDefinition, of source: SourceDefinition, _ binding: String,
        in scope: EvaluationContext
    ) async throws(FetchError) -> PageSet {
        guard part.binding == binding, case .http(let source) = source else {
            throw .failed(
                RunFailure(.local, "the loaded pages are of another configuration; refresh the pipeline first"))
        }
        return try await loadPages(
            pages, of: source, with: scope.variables, after: part.pages, seed: scope.seed(from: seed))
    }

    /// The value of a set of pages.
    private func value(
        of set: PageSet, of pages: PagesDefinition, _ stage: StageDefinition, asking source: SourceDefinition,
        _ binding: String, in scope: EvaluationContext
    ) async throws(FetchError) -> Value {
        let json = try await evaluate(stage.transform ?? ".", over: set.items, in: scope)
        let part = StoredPart(binding: binding, validators: Validators(), value: json, pages: try kept(set, of: pages))
        return Value(json: json, origin: source.request, part: .init(part, isNew: true))
    }

    private func kept(_ set: PageSet, of pages: PagesDefinition) throws(FetchError) -> StoredPages? {
        guard pages.keepsItems else { return nil }
        try keptItems.take(set.items.count)
        return StoredPages(items: set.items, count: set.pages, next: set.next, token: set.token)
    }

    /// The pages to which a check adds only the changes; nil: the check requests everything.
    private func synchronized(_ part: StoredPart?, _ binding: String) -> StoredPages? {
        guard !isUnconditional, let part, part.binding == binding, var pages = part.pages, pages.token != nil else {
            return nil
        }
        pages.next = nil
        return pages
    }

    /// The items of the pipeline's own pages, if its stage has nothing else.
    func items(of pages: PagesDefinition, _ source: HTTPSource) async throws(FetchError) -> [UInt8] {
        let scope = EvaluationContext()
        let binding = scope.binding(of: definition.stage, asking: .http(source), accepting: definition.check.types)
        var before: StoredPart?
        if place != nil {
            before = await parts.part(at: scope.path)
            guard let part = before, let pages = part.pages else { throw .failed(.noPart) }
            guard pages.next != nil else {
                parts.use(.init(part, isNew: false), at: scope.path)
                return pages.items
            }
        }
        let set =
            if let before {
                try await continued(before, pages, of: .http(source), binding, in: scope)
            } else {
                try await loadPages(
                    pages, of: source,
                    after: pages.sync == nil ? nil : synchronized(await parts.part(at: scope.path), binding),
                    seed: seed,
                    key: "\(scope.path) \(binding)")
            }
        if let kept = try kept(set, of: pages) {
            // The items themselves are the value.
            let part = StoredPart(binding: binding, validators: Validators(), value: [], pages: kept)
            parts.use(.init(part, isNew: true), at: scope.path)
        }
        return set.items
    }

    /// The last value of the stage's part.
    private func part(in scope: EvaluationContext) async -> StoredPart? {
        if let branch = scope.branch { return await branch.parts.part(of: branch.number) }
        return await parts.part(at: scope.path)
    }

    private func recordCopy(_ source: SourceDefinition, _ validators: Validators, in scope: EvaluationContext) {
        guard case .copy = source else { return }
        scope.reading?.record(ConsistentRead.Copy(source: source, validators: validators))
    }

    private func filled(_ source: SourceDefinition, in scope: EvaluationContext) throws(FetchError) -> SourceDefinition
    {
        for placeholder in scope.branch?.placeholders ?? source.placeholders
        where scope.placeholders[placeholder] == nil
            && scope.variables.contains(where: { $0.name == JQVariable.name(placeholder.name) })
        {
            throw .failed(RunFailure(.content, "the item has no text or number at '\(placeholder)'"))
        }
        do throws(RunFailure) {
            let filled = try source.filled { scope.placeholders[$0] ?? parameters.value($0) }
            guard case .http(let template) = source, let placeholder = template.urlPlaceholder,
                case .http(let request) = filled
            else { return filled }
            return .http(
                try request.following(
                    request.url, at: placeholder, from: scope.lists[placeholder.name]?.source,
                    sameOrigin: scope.lists[placeholder.name]?.sameOrigin ?? true, resolve: world.fetcher.resolve))
        } catch {
            throw .failed(error)
        }
    }

    private func fetch(
        _ source: SourceDefinition, _ validators: Validators?, _ coding: ContentCoding = .requested
    ) async throws(FetchError) -> FetchResult {
        if Task.isCancelled { throw .cancelled }
        try progress.allowRequest()
        var request = FetchRequest(
            source: source, validators: validators, maxBytes: definition.check.maxBytes, epoch: epoch,
            progress: progress.track(), announced: { [progress] in progress.announce($0) },
            asked: { [progress] in progress.countRequest() }, bodyStore: reader.bodyStore)
        request.coding = coding
        return try await world.fetcher.fetch(request)
    }

    private var reader: ContentReader { ContentReader(world: world, definition: definition) }

    private func json(
        of content: FetchedContent, by stage: StageDefinition, in scope: EvaluationContext
    ) async throws(FetchError) -> [UInt8] {
        let rules = definition.check
        // A file and a command have no media type.
        var rejection = rules.rejection(ofAnswer: content.body.size)
        if case .http = stage.source { rejection = rules.rejection(ofType: content.mediaType) ?? rejection }
        if let rejection {
            await content.body.discard()
            throw .failed(rejection)
        }
        let content = try await world.unpacked(
            content, by: stage.unpack, maxBytes: rules.maxBytes, bodyStore: reader.bodyStore)
        return try await reader.read(content.body) { (bytes, world) throws(FetchError) in
            try await evaluate(
                stage.transform ?? ".", over: bytes, written: stage.format, in: scope, by: world.transformer)
        }
    }

    /// The single JSON text that a program gives.
    ///
    /// - Parameter transformer: nil: the transformer of the run.
    private func evaluate(
        _ program: String, over input: [UInt8], written format: ContentFormat = .json, in scope: EvaluationContext,
        by transformer: (any Transforming)? = nil
    ) async throws(FetchError) -> [UInt8] {
        let values = try await (transformer ?? world.transformer).values(
            of: input, in: format, by: "(\(program)\n) | tojson", variables: scope.variables)
        guard let value = values.first, values.count == 1 else {
            throw .failed(
                RunFailure(
                    .content, "a transform must give exactly one value here, and gives \(values.count): \(program)"))
        }
        return value
    }

    /// Loads the pages of a paginated stage.
    ///
    /// - Parameter key: identifies a set whose interrupted load may go on; nil: it does not go on.
    private func loadPages(
        _ pages: PagesDefinition, of source: HTTPSource, with variables: [JQVariable] = [],
        after earlier: StoredPages? = nil, seed: UInt64, key: String? = nil
    ) async throws(FetchError) -> PageSet {
        let set = try await PageLoader(
            pages: pages, source: source, variables: variables, world: world, reader: reader, check: definition.check,
            retry: definition.refresh.retry, jitter: Jitter(seed: seed), epoch: epoch, progress: progress,
            earlier: earlier, interrupted: key == nil ? nil : interrupted, key: key ?? ""
        ).load()
        if set.truncated { progress.recordTruncation() }
        return set
    }
}

extension SourceDefinition {
    /// The HTTP request; nil: the source is of another kind.
    fileprivate var request: HTTPSource? {
        guard case .http(let request) = self else { return nil }
        return request
    }
}

extension RunFailure {
    /// A further page is requested, but the earlier part is missing.
    static let noPart = RunFailure(
        .absent, "the earlier content is missing; a refresh loads it")

    /// Whether the failure concerns one branch only: a `Retry-After` of the origin concerns all branches, and so does a
    /// spent budget.
    var isOfOneBranch: Bool { retryAfter == nil && kind != .budget }
}

extension FetchError {
    /// The failure with the name of the failed part before its message. Of nested parts only the innermost is named:
    /// its path contains the others.
    func of(_ part: String) -> FetchError {
        guard case .failed(var failure) = self, !failure.message.hasPrefix("branch '") else { return self }
        failure.message = "\(part): \(failure.message)"
        // The part's name may be a key, which is part of the content.
        failure.quotesContent = true
        return .failed(failure)
    }
}
