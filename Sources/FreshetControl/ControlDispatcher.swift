package import FreshetVarlink

/// Turns calls of `io.freshet.Control` and `io.systemd.service` into calls of ``ControlServices``: decodes parameters,
/// checks rights and names, and encodes replies.
package struct ControlDispatcher: Sendable {
    /// The most pipelines in one reply of a `List` or `Summarize` with `more`: some tens of kilobytes, so that
    /// thousands of pipelines neither block the loop nor fill the memory.
    package static let pipelinesPerReply = 64
    /// How many pipelines one query covers: that takes some tenths of a millisecond.
    static let pipelinesPerQuery = 8

    let services: ControlServices
    let pipelineNames: PipelineNames
    let rights: ControlRights
    private let daemonReplies = EncodedReplies<ControlMessage.Daemon>()
    private let generationReplies = EncodedReplies<ControlMessage.Generation>()

    package init(_ services: ControlServices, rights: ControlRights) {
        self.services = services
        pipelineNames = PipelineNames(services: services)
        self.rights = rights
    }

    /// The interfaces, for a ``VarlinkServer``.
    package func interfaces() throws(VarlinkInterface.ValidationError) -> [VarlinkInterface] {
        [try controlInterface(), try serviceInterface()]
    }

    private func controlInterface() throws(VarlinkInterface.ValidationError) -> VarlinkInterface {
        let generations = GenerationMethods(services: services, pipelineNames: pipelineNames)
        let cache = CacheMethods(services: services)
        return try VarlinkInterface(
            description: ControlInterface.description,
            methods: [
                "GetDaemon": method(getDaemon),
                "List": method(list),
                "Summarize": method(summarize),
                "Describe": method(describe),
                "Metrics": method(metrics),
                "RecentEvents": method(recentEvents),
                "Hold": method(hold),
                "Release": method(release),
                "Refresh": method(refresh),
                "LoadMore": method(loadMore),
                "SetParameters": method(setParameters),
                "Get": method(get),
                "History": method(generations.history),
                "ReadGeneration": method(generations.readGeneration),
                "ReadCandidate": method(generations.readCandidate),
                "Accept": method(generations.accept),
                "Rollback": method(generations.rollback),
                "Pin": method(generations.pin),
                "Unpin": method(generations.unpin),
                "Examine": method(cache.examine),
                "ListUnowned": method(cache.listUnowned),
                "Prune": method(cache.prune),
                "Monitor": method(monitor),
                "Signals": method(signals),
                "FollowSignals": method(followSignals),
                "FireSignal": method(fireSignal),
                "Reload": method(reload),
                "AwaitRuns": method(awaitRuns),
                "GetLogLevel": method(getLogLevel),
                "SetLogLevel": method(setLogLevel),
            ])
    }

    /// A handler that checks the caller's rights before anything else, and turns the interface's errors into replies.
    func method<Reply: Encodable & SendableMetatype>(
        _ body: @escaping @Sendable (VarlinkCall) async throws -> Reply
    ) -> VarlinkInterface.Handler {
        method { call in try VarlinkParameters(encoding: try await body(call)) }
    }

    /// The same for a method that encodes its last reply itself.
    func method(_ body: @escaping @Sendable (VarlinkCall) async throws -> VarlinkParameters) -> VarlinkInterface.Handler
    {
        { call in
            do {
                guard rights.allow(call.method, by: call.peer) else { throw ControlError.permissionDenied }
                // The client takes no reply, and the method only reads.
                if call.isOneway, ControlRights.permissions[call.method] == .read { return .none }
                return try await body(call)
            } catch let error as ControlError {
                throw error.reply
            }
        }
    }

    // MARK: Methods

    private func getDaemon(_ call: VarlinkCall) async throws -> VarlinkParameters {
        try daemonReplies.reply(with: ControlMessage.Daemon(daemon: await services.daemon.daemon()), about: "")
    }

    private func list(_ call: VarlinkCall) async throws -> VarlinkParameters {
        try await choose(
            call, state: \.state, reply: ControlMessage.Pipelines.init,
            some: { await services.pipelines.pipelines($0, for: call.peer) })
    }

    private func summarize(_ call: VarlinkCall) async throws -> VarlinkParameters {
        guard call.acceptsMore else { throw VarlinkErrorReply.expectedMore }
        return try await choose(
            call, state: \.state, reply: ControlMessage.Summaries.init,
            some: { await services.pipelines.summaries(of: $0, for: call.peer) })
    }

    /// Answers `List` and `Summarize`: sends the selected pipelines in several replies and returns the last reply.
    private func choose<Item, Reply: Encodable>(
        _ call: VarlinkCall, state: (Item) -> PipelineState, reply: ([Item]) -> Reply,
        some: (ArraySlice<String>) async -> [Item]
    ) async throws -> VarlinkParameters {
        let request = try call.parameters.decode(as: ControlMessage.List.self)
        if let limit = request.limit, limit < 1 { throw ControlError.invalidParameter("limit") }
        var names = try await pipelineNames.fitting(request.names, call)
        if let states = request.states {
            let fitting = await services.pipelines.pipelineNames(in: Set(states))
            names = request.names == nil ? fitting : Array(Set(names).intersection(fitting)).sorted()
        }
        var items: [Item] = []
        var left = request.limit ?? .max
        var rest = request.after.map { after in names.filter { after < $0 } }?[...] ?? names[...]
        while left > 0, !rest.isEmpty {
            await call.yield()
            // Pipelines that a reload has removed in the meantime are missing.
            let found = await some(rest.prefix(Self.pipelinesPerQuery))
            rest = rest.dropFirst(Self.pipelinesPerQuery)
            for item in found where left > 0 && request.states?.contains(state(item)) ?? true {
                left -= 1
                if call.acceptsMore && items.count == Self.pipelinesPerReply {
                    let encoded = try await sendAllButLast(items, to: call, reply)
                    // While the client does not read, the daemon keeps only the encoded bytes.
                    items = []
                    try await call.send(consume encoded)
                }
                items.append(item)
            }
        }
        guard call.acceptsMore else { return try VarlinkParameters(encoding: reply(items)) }
        return try await sendAllButLast(items, to: call, reply)
    }

    private func refresh(_ call: VarlinkCall) async throws -> ControlMessage.Results {
        let request = try call.parameters.decode(as: ControlMessage.Refresh.self)
        let all = request.all ?? false
        // Either all or some names: both, or neither, is an invalid request.
        guard all == (request.names ?? []).isEmpty else { throw ControlError.invalidParameter("names") }
        let names = try await pipelineNames.existing(all ? nil : request.names)
        let wait = request.wait ?? false
        let (force, unconditional) = (request.force ?? false, request.unconditional ?? false)
        // Without wait, one reply has all results.
        return try await results(of: names, call, streams: call.acceptsMore && wait) { name throws(ControlError) in
            try await refresh(
                name, wait: wait, force: force, unconditional: unconditional, alone: names.count == 1 && !all)
        }
    }

    private func awaitRuns(_ call: VarlinkCall) async throws -> ControlMessage.Results {
        let runs = try call.parameters.decode(as: ControlMessage.AwaitRuns.self).runs
        let numbers = Dictionary(runs.map { ($0.name, $0.after) }) { first, _ in first }
        guard !runs.isEmpty, numbers.count == runs.count else { throw ControlError.invalidParameter("runs") }
        let names = try await pipelineNames.existing(numbers.keys.sorted())
        return try await results(of: names, call, streams: call.acceptsMore) { name throws(ControlError) in
            do throws(ControlError) {
                return try await services.pipelines.firstRun(of: name, after: numbers[name] ?? 0)
            } catch .noSuchPipeline {
                return Self.removedResult(name)
            }
        }
    }

    /// The results for several pipelines, which are awaited together.
    ///
    /// - Parameter streams: sends each result when it is there, and which pipelines wait for the network; returns the
    ///   last results.
    private func results(
        of names: [String], _ call: VarlinkCall, streams: Bool,
        _ result: @escaping @Sendable (String) async throws(ControlError) -> RefreshResult
    ) async throws -> ControlMessage.Results {
        let observation = streams ? services.daemon.events.observe { Self.hint(in: $0) != nil } : nil
        let results = try await withThrowingTaskGroup(of: RefreshEvent.self) { group in
            for name in names {
                group.addTask {
                    let result = try await result(name)
                    return .result(
                        await services.pipelines.mayRead(name, call.peer) ? result : result.withholdingContent())
                }
            }
            func awaitHint() {
                if let observation { group.addTask { await Self.hint(in: observation) } }
            }
            awaitHint()
            var results: [RefreshResult] = []
            var left = Set(names)
            while !left.isEmpty, let event = try await group.next() {
                switch event {
                case .result(let result):
                    left.remove(result.name)
                    results.append(result)
                    guard streams, !left.isEmpty else { continue }
                    try await call.send(ControlMessage.Results(results: results).parameters())
                    results.removeAll(keepingCapacity: true)
                case .waits(let hint):
                    awaitHint()
                    guard left.contains(hint.name) else { continue }
                    let reply = ControlMessage.Results(results: [], waiting: [hint])
                    try await call.send(VarlinkParameters(encoding: reply))
                case .nothingMore: break
                }
            }
            group.cancelAll()
            return results
        }
        return ControlMessage.Results(results: streams ? results : results.sorted { $0.name < $1.name })
    }

    private static func removedResult(_ name: String) -> RefreshResult {
        let removed = "the pipeline was removed by a reload"
        return RefreshResult(name: name, outcome: .cancelled, failure: removed, publicFailure: removed)
    }

    private enum RefreshEvent: Sendable {
        case result(RefreshResult)
        case waits(WaitingHint)
        /// The observation has ended.
        case nothingMore
    }

    /// The next pipeline that waits until the network is proven reachable, and the reason.
    private static func hint(in observation: ControlEvents.Observation) async -> RefreshEvent {
        while let event = await observation.next() {
            if let hint = hint(in: event) { return .waits(hint) }
        }
        return .nothingMore
    }

    private static func hint(in event: ControlEvent) -> WaitingHint? {
        guard event.kind == .state, event.waitingFor == .network, let name = event.pipeline, let reason = event.detail
        else { return nil }
        return WaitingHint(name: name, reason: reason)
    }

    /// - Parameter alone: whether the call names only this pipeline: then a refusal is the reply to the whole call.
    private func refresh(
        _ name: String, wait: Bool, force: Bool, unconditional: Bool, alone: Bool
    ) async throws(ControlError) -> RefreshResult {
        do throws(ControlError) {
            let result = try await services.pipelines.refresh(
                name, wait: wait, force: force, unconditional: unconditional)
            if alone, let hint = result.tryLater { throw ControlError.tryLater(hint) }
            return result
        } catch .tryLater(let hint) where !alone {
            return RefreshResult(name: name, tryLater: hint)
        } catch .noSuchPipeline where !alone {
            return Self.removedResult(name)
        }
    }

    private func loadMore(_ call: VarlinkCall) async throws -> ControlMessage.LoadedMore {
        let request = try call.parameters.decode(as: ControlMessage.LoadMore.self)
        try await pipelineNames.requireExisting(request.name)
        let result = try await services.pipelines.loadMore(
            request.name, at: request.path ?? [], wait: request.wait ?? false)
        return ControlMessage.LoadedMore(
            result: await services.pipelines.mayRead(request.name, call.peer) ? result : result.withholdingContent())
    }

    private func setParameters(_ call: VarlinkCall) async throws -> ControlMessage.ParametersSet {
        let request = try call.parameters.decode(as: ControlMessage.SetParameters.self)
        try await pipelineNames.requireExisting(request.name)
        guard Set(request.settings.map(\.parameter)).count == request.settings.count else {
            throw ControlError.invalidParameter("settings")
        }
        return try await services.pipelines.setParameters(
            of: request.name, to: request.settings, othersToDefault: request.othersToDefault ?? false,
            caller: call.caller)
    }

    private func get(_ call: VarlinkCall) async throws -> VarlinkParameters {
        let name = try call.parameters.string("name")
        try await pipelineNames.requireExisting(name)
        switch await services.pipelines.copy(of: name, for: call.peer) {
        case .withdrawn(let copy): throw ControlError.withdrawn(name: name, number: copy.number, since: copy.since)
        case .published(let generation):
            return try generationReplies.reply(with: ControlMessage.Generation(generation: generation), about: name)
        case .some(.none), nil: throw ControlError.noGeneration(name: name)
        }
    }

    /// An event, reduced to what this peer may see.
    func event(_ event: ControlEvent, for peer: VarlinkPeer) async -> ControlEvent {
        guard let name = event.pipeline, !(await services.pipelines.mayRead(name, peer)) else { return event }
        return event.withholdingContent()
    }

    private func monitor(_ call: VarlinkCall) async throws -> ControlMessage.Event {
        guard call.acceptsMore else { throw VarlinkErrorReply.expectedMore }
        let selection = try await pipelineNames.selection(
            try call.parameters.decode(as: ControlMessage.Names.self).names)
        try await follow(call) { $0.kind != .fact && selection.contains($0.pipeline) }
    }

    private func followSignals(_ call: VarlinkCall) async throws -> ControlMessage.Event {
        guard call.acceptsMore else { throw VarlinkErrorReply.expectedMore }
        let selection = SignalSelection(try call.parameters.decode(as: ControlMessage.Names.self).names)
        let rows = await services.signals.signals().map(\.name)
        if let unknown = selection.unknownName(among: rows) {
            throw ControlError.noSuchSignal(
                name: unknown, suggestion: SignalSelection.suggestion(for: unknown, among: rows))
        }
        try await follow(call, selection.contains)
    }

    /// Sends the selected events from now on, until the client goes away.
    private func follow(_ call: VarlinkCall, _ isSelected: @escaping @Sendable (ControlEvent) -> Bool) async throws
        -> Never
    {
        let observation = services.daemon.events.observe(isSelected)
        call.followsEvents()
        try await call.send(VarlinkParameters(encoding: ControlMessage.Event()))
        while let event = await observation.next() {
            let shown = await self.event(event, for: call.peer)
            try await call.send(VarlinkParameters(encoding: ControlMessage.Event(event: shown)))
        }
        throw CancellationError()
    }

    private func fireSignal(_ call: VarlinkCall) async throws -> ControlMessage.Fired {
        let name = try call.parameters.string("name")
        return ControlMessage.Fired(
            pipelines: Int64(try await services.signals.fireSignal(name, caller: call.caller)))
    }

    private func signals(_ call: VarlinkCall) async throws -> ControlMessage.Signals {
        ControlMessage.Signals(signals: await services.signals.signals())
    }

    private func reload(_ call: VarlinkCall) async throws -> ControlMessage.Reloaded {
        let request = try call.parameters.decode(as: ControlMessage.Reload.self)
        let scope: ReloadScope
        switch (request.configurationOnly ?? false, request.refresh ?? false) {
        case (false, false): scope = .changed
        case (true, false): scope = .configurationOnly
        case (false, true): scope = .refresh
        case (true, true): throw ControlError.invalidParameter("refresh")
        }
        let (summary, diagnostics) = try await services.daemon.reload(scope, caller: "freshetctl reload")
        return ControlMessage.Reloaded(summary: summary, diagnostics: diagnostics)
    }

    private func getLogLevel(_ call: VarlinkCall) async throws -> ControlMessage.Level {
        ControlMessage.Level(level: await services.daemon.logLevel())
    }

    private func setLogLevel(_ call: VarlinkCall) async throws -> ControlMessage.Nothing {
        await services.daemon.setLogLevel(
            try call.parameters.decode(as: ControlMessage.Level.self).level, caller: call.caller)
        return ControlMessage.Nothing()
    }
}
