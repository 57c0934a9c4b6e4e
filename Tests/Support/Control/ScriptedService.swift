package import FreshetControl
package import FreshetVarlink
import Synchronization

/// A daemon with scripted answers.
package final class ScriptedService: PipelineControl, GenerationControl, CacheControl, SignalControl, DaemonControl {
    package struct Script {
        package var pipelines: [String: PipelineStatus] = [:]
        /// Pipelines whose published files only root may read.
        package var unreadable: Set<String> = []
        package var refresh: [String: Result<RefreshResult, ControlError>] = [:]
        package var reload: Result<ReloadSummary, ControlError> = .success(ReloadSummary())
        package var warnings: [ConfigurationDiagnostic] = []
        package var signals: [SignalStatus] = []
        package var descriptions: [String: PipelineDescription] = [:]
        package var counters: [String: PipelineCounters] = [:]
        package var fired: Result<Int, ControlError> = .success(0)
        package var parameters: Result<ControlMessage.ParametersSet, ControlError> = .success(
            ControlMessage.ParametersSet(changed: [], parameters: []))
        package var history: [PastGeneration] = []
        /// The path of an item's key.
        package var key: String?
        /// The content of generations, by number; `readable` by everybody or only by root.
        package var contents: [Int64: [UInt8]] = [:]
        /// Called before the content of a generation is read.
        package var beforeContent: (@Sendable (Int64) -> Void)?
        package var candidate: [UInt8]?
        package var isReadable = true
        package var rollback: Result<ControlMessage.RolledBack, ControlError> = .failure(.busy("not scripted"))
        package var pin: Result<ControlMessage.Pinned, ControlError> = .failure(.busy("not scripted"))
        /// The errors that an examination finds, by place; all other places are intact.
        package var unowned: Result<[UnownedPipeline], ControlError> = .success([])
        /// Why a part of a pruned pipeline stays, by name.
        package var unprunable: [String: String] = [:]
        /// Errors instead of the answer to the n-th call of `Prune`, from 1.
        package var pruneFailure: (call: Int, error: ControlError)?
        package var examined: [ExaminationStep: Result<ControlMessage.Examined, ControlError>] = [:]
        package var loadedMore: Result<LoadMoreResult, ControlError>?
        package var logLevel = LogLevel.info
        package var refusedReload: RefusedReload?
        package var inactiveFiles: [String: String] = [:]
        /// Called before a request for a refresh or a further page is answered.
        package var beforeRefresh: (@Sendable (String) async -> Void)?
        /// The requests, as text.
        package var asked: [String] = []
        /// How often the names of all pipelines were requested.
        package var allNamesAsked = 0
    }
    let script: Mutex<Script>
    package let events = ControlEvents()

    package init(_ names: [String] = ["catalogue", "jwks"]) {
        var script = Script()
        for name in names {
            script.pipelines[name] = PipelineStatus(
                name: name, source: "https://example.com/\(name)", state: .loaded,
                generation: GenerationStatus(
                    number: 3, size: 1_229, digest: "ab", committedAt: 1_000, path: "/current/\(name).json"))
        }
        self.script = Mutex(script)
    }

    /// This object in all its roles.
    package var services: ControlServices {
        ControlServices(pipelines: self, generations: self, cache: self, signals: self, daemon: self)
    }

    package var asked: [String] { script.withLock { $0.asked } }
    package var allNamesAsked: Int { script.withLock { $0.allNamesAsked } }

    package func change(_ body: (inout Script) -> Void) { script.withLock { body(&$0) } }

    package func daemon() async -> DaemonStatus {
        DaemonStatus(
            version: "1.0", pid: 42, since: 5, network: "reachable via eth0", networkReachable: true,
            pipelines: PipelineCounts(script.withLock { $0.pipelines.values.map(\.state) }),
            refusedReload: script.withLock { $0.refusedReload })
    }

    package func pipelineNames(in states: Set<PipelineState>) async -> [String] {
        script.withLock { script in
            script.pipelines.filter { states.contains($0.value.state) }.map(\.key).sorted()
        }
    }

    package func pipelineNames() async -> [String] {
        script.withLock { script in
            script.allNamesAsked += 1
            return script.pipelines.keys.sorted()
        }
    }

    package func inactiveFile(_ name: String) async -> String? { script.withLock { $0.inactiveFiles[name] } }
    package func hasPipeline(_ name: String) async -> Bool { script.withLock { $0.pipelines[name] != nil } }

    package func pipeline(_ name: String) async -> PipelineStatus? { script.withLock { $0.pipelines[name] } }

    package func pipelines(_ names: ArraySlice<String>, for peer: VarlinkPeer) async -> [PipelineStatus] {
        script.withLock { script in
            names.compactMap { name in
                script.pipelines[name].map { script.unreadable.contains(name) ? $0.withholdingContent() : $0 }
            }
        }
    }

    package func mayRead(_ name: String, _ peer: VarlinkPeer) async -> Bool {
        script.withLock { !$0.unreadable.contains(name) }
    }

    package func copy(of name: String, for peer: VarlinkPeer) async -> CopyStatus? {
        guard let pipeline = await pipelines([name], for: peer).first else { return nil }
        if let withdrawn = pipeline.withdrawn { return .withdrawn(withdrawn) }
        return pipeline.generation.map(CopyStatus.published) ?? CopyStatus.none
    }

    package func summaries(of names: ArraySlice<String>, for peer: VarlinkPeer) async -> [PipelineSummary] {
        await pipelines(names, for: peer).map { PipelineSummary($0) }
    }

    package func refresh(
        _ name: String, wait: Bool, force: Bool, unconditional: Bool
    ) async throws(ControlError) -> RefreshResult {
        await script.withLock { $0.beforeRefresh }?(name)
        let result = script.withLock { script in
            script.asked.append(
                "refresh \(name)\(wait ? " wait" : "")\(force ? " force" : "")\(unconditional ? " unconditional" : "")")
            return script.refresh[name] ?? .success(RefreshResult(name: name))
        }
        return try result.get()
    }

    package func firstRun(of name: String, after number: Int64) async throws(ControlError) -> RefreshResult {
        let result = script.withLock { script in
            script.asked.append("await \(name) after \(number)")
            return script.refresh[name] ?? .success(RefreshResult(name: name, outcome: .unchanged))
        }
        return try result.get()
    }

    package func descriptions(of names: ArraySlice<String>) async -> [PipelineDescription] {
        script.withLock { script in
            names.compactMap { name in
                script.descriptions[name]
                    ?? script.pipelines[name].map { PipelineDescription(name: name, source: $0.source) }
            }
        }
    }

    package func counters(of names: ArraySlice<String>) async -> [PipelineCounters] {
        script.withLock { script in
            names.compactMap { name in
                script.counters[name] ?? script.pipelines[name].map { PipelineCounters(name: $0.name) }
            }
        }
    }

    package func hold(_ name: String, _ isHeld: Bool, caller: String) async throws(ControlError) -> Bool {
        script.withLock { script in
            script.asked.append("\(isHeld ? "hold" : "release") \(name) for \(caller)")
            let isNew = (script.pipelines[name]?.heldSince != nil) != isHeld
            script.pipelines[name]?.heldSince = isHeld ? 1_000 : nil
            script.pipelines[name]?.state = isHeld ? .held : .loaded
            return isNew
        }
    }

    package func loadMore(
        _ name: String, at place: [String], wait: Bool
    ) async throws(ControlError) -> LoadMoreResult {
        await script.withLock { $0.beforeRefresh }?(name)
        let result = script.withLock { script in
            script.asked.append((["load-more", name] + place + (wait ? ["wait"] : [])).joined(separator: " "))
            return script.loadedMore ?? .success(LoadMoreResult(name: name, path: place))
        }
        return try result.get()
    }

    package func setParameters(
        of name: String, to settings: [ParameterSetting], othersToDefault: Bool, caller: String
    ) async throws(ControlError) -> ControlMessage.ParametersSet {
        let result = script.withLock { script in
            let words = settings.map { "\($0.parameter)=\($0.value ?? "default")" }
            let rest = othersToDefault ? ["others=default"] : []
            script.asked.append("set \(name) \((words + rest).joined(separator: " ")) for \(caller)")
            return script.parameters
        }
        return try result.get()
    }

    package func history(
        of name: String, limit: Int?
    ) async throws(ControlError) -> ControlMessage.PastGenerations {
        script.withLock {
            ControlMessage.PastGenerations(generations: Array($0.history.prefix(limit ?? .max)), key: $0.key)
        }
    }

    package func content(
        of name: String, generation: Int64, for peer: VarlinkPeer
    ) async throws(ControlError) -> any ControlContent {
        script.withLock { $0.beforeContent }?(generation)
        let (content, isReadable) = script.withLock { ($0.contents[generation], $0.isReadable) }
        guard isReadable else { throw .notReadable(name: name, number: generation) }
        guard let content else { throw .noSuchGeneration(name: name, number: generation, kept: []) }
        return ScriptedContent(content)
    }

    package func candidate(of name: String, for peer: VarlinkPeer) async throws(ControlError) -> any ControlContent {
        let (content, isReadable) = script.withLock { ($0.candidate, $0.isReadable) }
        guard isReadable else { throw .notReadable(name: name, number: nil) }
        guard let content else { throw .noCandidate(name: name) }
        return ScriptedContent(content)
    }

    package func accept(
        _ name: String, _ digest: String?, caller: String
    ) async throws(ControlError) -> ControlMessage.RolledBack {
        let result = script.withLock { script in
            script.asked.append("accept \(name) \(digest ?? "whatever it is") for \(caller)")
            return script.rollback
        }
        return try result.get()
    }

    package func rollBack(
        _ name: String, to number: Int64?, caller: String
    ) async throws(ControlError) -> ControlMessage.RolledBack {
        let result = script.withLock { script in
            script.asked.append("rollback \(name) \(number.map(String.init) ?? "before") for \(caller)")
            return script.rollback
        }
        return try result.get()
    }

    package func pin(_ name: String, caller: String) async throws(ControlError) -> ControlMessage.Pinned {
        let result = script.withLock { script in
            script.asked.append("pin \(name) for \(caller)")
            return script.pin
        }
        return try result.get()
    }

    package func unpin(_ name: String, caller: String) async throws(ControlError) -> ControlMessage.Pinned {
        let result = script.withLock { script in
            script.asked.append("unpin \(name) for \(caller)")
            return script.pin
        }
        return try result.get()
    }

    package func examinationSteps() async throws(ControlError) -> [ExaminationStep] {
        script.withLock { [.index, .strays] + $0.pipelines.keys.sorted().map(ExaminationStep.pipeline) }
    }

    package func examine(
        _ step: ExaminationStep, repair: Bool
    ) async throws(ControlError) -> ControlMessage.Examined {
        let result = script.withLock { script in
            if repair { script.asked.append("repair \(step)") }
            return script.examined[step] ?? .success(ControlMessage.Examined())
        }
        return try result.get()
    }

    package func unowned() async throws(ControlError) -> [UnownedPipeline] {
        try script.withLock { $0.unowned }.get()
    }

    package func prune(_ names: [String], caller: String) async throws(ControlError) -> ControlMessage.Pruned {
        let (unowned, unprunable) = try script.withLock { script in
            script.asked.append("prune \(names.joined(separator: " ")) for \(caller)")
            let calls = script.asked.count { $0.hasPrefix("prune ") }
            if let failure = script.pruneFailure, failure.call == calls {
                return Result<([UnownedPipeline], [String: String]), ControlError>.failure(failure.error)
            }
            return script.unowned.map { ($0, script.unprunable) }
        }.get()
        let named = unowned.filter { names.contains($0.name) }
        return ControlMessage.Pruned(
            pipelines: named.filter { unprunable[$0.name] == nil },
            failed: named.compactMap { pipeline in
                unprunable[pipeline.name].map { UnprunedPipeline(name: pipeline.name, reason: $0) }
            })
    }

    package func signals() async -> [SignalStatus] { script.withLock { $0.signals } }

    package func fireSignal(_ name: String, caller: String) async throws(ControlError) -> Int {
        let result = script.withLock { script in
            script.asked.append("fire \(name) for \(caller)")
            return script.fired
        }
        return try result.get()
    }

    package func logLevel() async -> LogLevel { script.withLock { $0.logLevel } }

    package func setLogLevel(_ level: LogLevel, caller: String) async {
        script.withLock { script in
            script.asked.append("log level \(level) for \(caller)")
            script.logLevel = level
        }
    }

    package func reload(
        _ scope: ReloadScope, caller: String
    ) async throws(ControlError) -> (ReloadSummary, [ConfigurationDiagnostic]) {
        let (result, warnings) = script.withLock { script in
            script.asked.append("\(caller)\(scope == .changed ? "" : " \(scope)")")
            return (script.reload, script.warnings)
        }
        return (try result.get(), warnings)
    }
}

/// Bytes that are read in pieces.
private final class ScriptedContent: ControlContent {
    private let rest: Mutex<ArraySlice<UInt8>>

    init(_ bytes: [UInt8]) { rest = Mutex(bytes[...]) }

    func next(_ limit: Int) async throws(ControlError) -> [UInt8] {
        rest.withLock { rest in
            defer { rest = rest.dropFirst(limit) }
            return Array(rest.prefix(limit))
        }
    }
}
