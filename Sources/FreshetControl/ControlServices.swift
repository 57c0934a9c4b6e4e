package import FreshetVarlink

/// The operations that the control interface needs from the daemon.
///
/// ``ControlDispatcher`` has checked the caller's rights, and that a pipeline with the name exists. The caller's task
/// is cancelled when its client goes away. Methods may be called concurrently.
package protocol ControlService: Sendable {
    func daemon() async -> DaemonStatus
    /// The names of all pipelines, sorted.
    func pipelineNames() async -> [String]
    /// Whether there is a pipeline with this name. The cost does not depend on the number of pipelines.
    func hasPipeline(_ name: String) async -> Bool
    /// The file of a pipeline that is not in the active configuration, such as a file written since the last reload;
    /// nil: there is no such file.
    func inactiveFile(_ name: String) async -> String?
    /// The status of a pipeline; nil if the pipeline has been removed.
    func pipeline(_ name: String) async -> PipelineStatus?
    /// Whether a peer may read the published file of a pipeline, according to the configured mode and group of the
    /// file. Other peers do not see texts that may quote the content.
    func mayRead(_ name: String, _ peer: VarlinkPeer) async -> Bool
    /// The summary of a pipeline; nil if the pipeline has been removed.
    func summary(of name: String) async -> PipelineSummary?
    /// The status of several pipelines, each reduced to what this peer may see; removed pipelines are left out. An
    /// actor answers for all of them in one job.
    func pipelines(_ names: ArraySlice<String>, for peer: VarlinkPeer) async -> [PipelineStatus]
    /// The summaries of several pipelines; removed pipelines are left out.
    func summaries(of names: ArraySlice<String>) async -> [PipelineSummary]
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
    /// The configured inputs, signals, files and times of a pipeline; nil if the pipeline has been removed.
    func description(of name: String) async -> PipelineDescription?
    /// The counters of a pipeline; nil if the pipeline has been removed.
    func counters(of name: String) async -> PipelineCounters?
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
    func signals() async -> [SignalStatus]
    /// Fires the signal of a row of ``signals()`` by hand, and changes nothing else.
    ///
    /// - Parameter caller: the user and process that call, in words, for the signal's detail.
    /// - Returns: how many pipelines received the signal.
    func fireSignal(_ name: String, caller: String) async throws(ControlError) -> Int
    /// Reads the configuration and applies it, or changes nothing and throws
    /// ``ControlError/configurationRefused(_:)``.
    ///
    /// - Parameters:
    ///   - configurationOnly: does not fire the signal `reload`.
    ///   - caller: the user and process that call, in words, for the signal's detail.
    func reload(
        configurationOnly: Bool, caller: String
    ) async throws(ControlError) -> (ReloadSummary, [ConfigurationDiagnostic])
    func logLevel() async -> LogLevel
    /// Sets the log level. It takes effect immediately and lasts until the daemon ends.
    ///
    /// - Parameter caller: the user and process that call, in words.
    func setLogLevel(_ level: LogLevel, caller: String) async
    /// The events that the daemon publishes.
    var events: ControlEvents { get }
}

/// The content of a generation, which can be read once.
package protocol ControlContent: Sendable {
    /// The next bytes, at most `limit`; empty at the end.
    func next(_ limit: Int) async throws(ControlError) -> [UInt8]
}

/// Why the daemon refused a request or failed: the errors of `io.freshet.Control`, and missing rights.
package enum ControlError: Error, Hashable, Sendable {
    /// - `file`: the pipeline's file, which is not in the active configuration.
    case noSuchPipeline(name: String, suggestion: String?, file: String? = nil)
    /// The pipeline does not run: its configuration has errors.
    case invalidPipeline(name: String)
    case noGeneration(name: String)
    /// Readers find no copy: it is past its maximum age.
    ///
    /// - `since`: microseconds since 1970.
    case withdrawn(name: String, number: Int64, since: Int64)
    /// The content of this generation is not kept; a nil number: no generation before the current one is kept.
    case noSuchGeneration(name: String, number: Int64?, kept: [Int64])
    /// The file of this generation does not have the generation's content any more.
    case damagedGeneration(name: String, number: Int64)
    /// The caller's user may not read the files of this pipeline; a nil number: its candidate.
    case notReadable(name: String, number: Int64?)
    /// There is no candidate: no rejected content is kept.
    case noCandidate(name: String)
    /// The candidate has another digest than the request names.
    case otherCandidate(name: String, digest: String)
    /// The copy is pinned at this generation.
    case pinned(name: String, number: Int64)
    case noSuchSignal(name: String, suggestion: String?)
    /// The signal cannot be fired by hand: it belongs to single pipelines, which `Refresh` runs.
    case cannotFire(name: String)
    case configurationRefused([ConfigurationDiagnostic])
    /// A value is invalid; no parameter was set.
    case parametersRefused(name: String, refusals: [InvalidSetting])
    /// All pages are loaded.
    case nothingMore(name: String, path: [String])
    /// This place does not exist, or its pages are not loaded on demand.
    case noSuchBranch(name: String, path: [String], suggestion: String?)
    /// Several places have further pages, and the request names no place.
    case severalBranches(name: String, more: MorePages)
    /// The pipeline cannot load further pages; the reason is a sentence with the pipeline as its subject.
    case cannotLoadMore(name: String, reason: String)
    case tryLater(TryLaterHint)
    /// The daemon tried the operation and failed; the reason is a sentence.
    ///
    /// - `name`: the pipeline; nil: the operation was on the cache as a whole.
    case failed(name: String?, reason: String)
    /// The daemon cannot do this at the moment; the text is a sentence with the reason.
    case busy(String)
    /// A daemon that ends before it is ready answers this to the clients that waited for it; the text is a sentence with
    /// the reason.
    case notStarted(String)
    /// The caller's user may not do this.
    case permissionDenied
    /// A parameter with this name is missing, or has an invalid value.
    case invalidParameter(String)
}
