package import FreshetVarlink

// The operations that the control interface needs from the daemon. ``ControlDispatcher`` has checked the caller's
// rights, and that a pipeline with the name exists. The caller's task is cancelled when its client goes away. Methods
// may be called concurrently.

/// A pipeline's copy: published, withdrawn, or none.
package enum CopyStatus: Hashable, Sendable {
    case published(GenerationStatus)
    case withdrawn(WithdrawnCopy)
    case none
}

/// The status of pipelines, and requests to them.
package protocol PipelineControl: Sendable {
    /// The names of all pipelines, sorted.
    func pipelineNames() async -> [String]
    /// The names of all pipelines in one of these states, sorted. Only the status of pipelines that changed since the
    /// last call is made again; of the others the daemon keeps the state.
    func pipelineNames(in states: Set<PipelineState>) async -> [String]
    /// Whether there is a pipeline with this name. The cost does not depend on the number of pipelines.
    func hasPipeline(_ name: String) async -> Bool
    /// Whether a peer may read the published file of a pipeline, according to the configured mode and group of the
    /// file. Other peers do not see texts that may quote the content.
    func mayRead(_ name: String, _ peer: VarlinkPeer) async -> Bool
    /// The status of several pipelines, each reduced to what this peer may see; removed pipelines are left out.
    func pipelines(_ names: ArraySlice<String>, for peer: VarlinkPeer) async -> [PipelineStatus]
    /// The copy of a pipeline, reduced to what this peer may see; nil if there is no such pipeline.
    func copy(of name: String, for peer: VarlinkPeer) async -> CopyStatus?
    /// The summaries of several pipelines; removed pipelines are left out.
    func summaries(of names: ArraySlice<String>, for peer: VarlinkPeer) async -> [PipelineSummary]
    /// The configured inputs, signals, files and times of several pipelines.
    func descriptions(of names: ArraySlice<String>) async -> [PipelineDescription]
    /// The counters of several pipelines.
    func counters(of names: ArraySlice<String>) async -> [PipelineCounters]
    /// Requests a run.
    ///
    /// With `wait`, returns when the first run that started after the request, or the run that superseded it, has
    /// ended. If the task is cancelled, the call returns early and the run continues.
    ///
    /// - Parameters:
    ///   - force: ignores `Retry-After` and budgets.
    ///   - unconditional: the run sends no validators.
    func refresh(_ name: String, wait: Bool, force: Bool, unconditional: Bool) async throws(ControlError)
        -> RefreshResult
    /// Awaits the end of the first run whose number is higher than `number`, and requests no run. If the task is
    /// cancelled, the call returns early and the run continues.
    func firstRun(of name: String, after number: Int64) async throws(ControlError) -> RefreshResult
    /// Keeps a pipeline from running until it is released, or releases it.
    ///
    /// - Returns: whether this changed anything.
    func hold(_ name: String, _ isHeld: Bool, caller: String) async throws(ControlError) -> Bool
    /// Requests one further page of a set.
    ///
    /// With `wait`, returns when the run that loads the page has ended. If the task is cancelled, the call returns
    /// early and the run continues.
    ///
    /// - Parameter place: the keys of the branch; empty: the only place that has further pages.
    func loadMore(_ name: String, at place: [String], wait: Bool) async throws(ControlError) -> LoadMoreResult
    /// Sets several parameters of a pipeline together, or throws ``ControlError/parametersRefused(name:refusals:)``.
    ///
    /// - Parameters:
    ///   - settings: each parameter at most once.
    ///   - othersToDefault: resets all other parameters to their defaults.
    ///   - caller: the user and process that call, in words.
    func setParameters(
        of name: String, to settings: [ParameterSetting], othersToDefault: Bool, caller: String
    ) async throws(ControlError) -> ControlMessage.ParametersSet
}

/// The generations of pipelines, their contents, and the choice among them.
package protocol GenerationControl: Sendable {
    /// The newest generations of a pipeline, newest first.
    ///
    /// - Parameter limit: the most generations; nil: all in the index.
    func history(of name: String, limit: Int?) async throws(ControlError) -> ControlMessage.PastGenerations
    /// Opens the content of a generation that is kept, or throws ``ControlError/noSuchGeneration(name:number:kept:)``,
    /// ``ControlError/damagedGeneration(name:number:)``, ``ControlError/notReadable(name:number:)`` or
    /// ``ControlError/failed(name:reason:)``.
    ///
    /// - Parameter peer: the reader: the permissions of the file decide, not the rights on the interface.
    func content(
        of name: String, generation: Int64, for peer: VarlinkPeer
    ) async throws(ControlError) -> any ControlContent
    /// Opens the content that a check rejected, as ``content(of:generation:for:)``, or throws
    /// ``ControlError/noCandidate(name:)``.
    func candidate(of name: String, for peer: VarlinkPeer) async throws(ControlError) -> any ControlContent
    /// Publishes the content that a check rejected, or throws ``ControlError/noCandidate(name:)``,
    /// ``ControlError/otherCandidate(name:digest:)`` or ``ControlError/pinned(name:number:)``.
    ///
    /// - Parameter digest: the beginning of the candidate's digest; nil: any candidate.
    func accept(
        _ name: String, _ digest: String?, caller: String
    ) async throws(ControlError) -> ControlMessage.RolledBack
    /// Makes a kept generation the current one. Throws the errors of ``content(of:generation:for:)``,
    /// ``ControlError/pinned(name:number:)`` and ``ControlError/invalidPipeline(name:)``.
    ///
    /// - Parameter number: nil: the generation before the current one.
    func rollBack(
        _ name: String, to number: Int64?, caller: String
    ) async throws(ControlError) -> ControlMessage.RolledBack
    /// Keeps the copy of a pipeline from being replaced, or throws ``ControlError/noGeneration(name:)`` or
    /// ``ControlError/withdrawn(name:number:since:)``.
    func pin(_ name: String, caller: String) async throws(ControlError) -> ControlMessage.Pinned
    func unpin(_ name: String, caller: String) async throws(ControlError) -> ControlMessage.Pinned
}

/// The cache as a whole: its examination, and the removal of unused files.
package protocol CacheControl: Sendable {
    /// The steps of an examination of the cache, in their order.
    func examinationSteps() async throws(ControlError) -> [ExaminationStep]
    /// Examines a part of the cache while the daemon goes on working.
    ///
    /// - Parameter repair: whether errors are repaired where possible.
    func examine(_ step: ExaminationStep, repair: Bool) async throws(ControlError) -> ControlMessage.Examined
    /// The files in the cache of pipelines that are not configured.
    func unowned() async throws(ControlError) -> [UnownedPipeline]
    /// Removes all files of these pipelines. Configured pipelines are skipped.
    ///
    /// - Returns: the removed pipelines, and the pipelines of which files are left.
    /// - Throws: if nothing was removed.
    func prune(_ names: [String], caller: String) async throws(ControlError) -> ControlMessage.Pruned
}

/// The signal sources.
package protocol SignalControl: Sendable {
    func signals() async -> [SignalStatus]
    /// Fires the signal of a row of ``signals()`` by hand, and changes nothing else.
    ///
    /// - Parameter caller: the user and process that call, in words, for the signal's detail.
    /// - Returns: how many pipelines received the signal.
    func fireSignal(_ name: String, caller: String) async throws(ControlError) -> Int
}

/// The daemon: its status, configuration, log level and events.
package protocol DaemonControl: Sendable {
    func daemon() async -> DaemonStatus
    /// The file of a pipeline that is not in the active configuration, such as a file written since the last reload;
    /// nil: there is no such file.
    func inactiveFile(_ name: String) async -> String?
    /// Reads the configuration and applies it, or changes nothing and throws
    /// ``ControlError/configurationRefused(_:)``.
    ///
    /// - Parameters:
    ///   - scope: the runs that the reload requests.
    ///   - caller: the user and process that call, in words, for the signal's detail.
    func reload(
        _ scope: ReloadScope, caller: String
    ) async throws(ControlError) -> (ReloadSummary, [ConfigurationDiagnostic])
    func logLevel() async -> LogLevel
    /// Sets the log level. It takes effect immediately and lasts until the daemon ends.
    ///
    /// - Parameter caller: the user and process that call, in words.
    func setLogLevel(_ level: LogLevel, caller: String) async
    /// The events that the daemon publishes.
    var events: ControlEvents { get }
}

/// The parts of the daemon that implement the control interface.
package struct ControlServices: Sendable {
    package let pipelines: any PipelineControl
    package let generations: any GenerationControl
    package let cache: any CacheControl
    package let signals: any SignalControl
    package let daemon: any DaemonControl

    package init(
        pipelines: any PipelineControl, generations: any GenerationControl, cache: any CacheControl,
        signals: any SignalControl, daemon: any DaemonControl
    ) {
        self.pipelines = pipelines
        self.generations = generations
        self.cache = cache
        self.signals = signals
        self.daemon = daemon
    }
}

/// The content of a generation, which can be read once.
package protocol ControlContent: Sendable {
    /// The next bytes, at most `limit`; empty at the end.
    func next(_ limit: Int) async throws(ControlError) -> [UInt8]
}
