package import FreshetVarlink

/// What the control interface needs of the daemon.
///
/// Names that reach it are those of existing pipelines, the caller's rights have been checked, and the caller's task is
/// cancelled when its client goes away. Methods may be called concurrently.
package protocol ControlService: Sendable {
    func daemon() async -> DaemonStatus
    /// The names of all pipelines, sorted.
    func pipelineNames() async -> [String]
    /// Whether there is a pipeline of this name. Costs the same however many others there are.
    func hasPipeline(_ name: String) async -> Bool
    /// The file of a pipeline that the configuration in force does not have, as one that was written since; nil: none.
    func fileNotInForce(_ name: String) async -> String?
    /// The status of one pipeline; nil if it has gone away.
    func pipeline(_ name: String) async -> PipelineStatus?
    /// Whether a peer may read the published file of a pipeline, by the mode and the group that the configuration gives it.
    /// What the interface shows of a pipeline depends on it.
    func mayRead(_ name: String, _ peer: VarlinkPeer) async -> Bool
    /// The same in short.
    func summary(of name: String) async -> PipelineSummary?
    /// The statuses of several pipelines, each as this peer may see it; without those that have gone away. An actor answers for
    /// all of them in one job.
    func pipelines(_ names: ArraySlice<String>, for peer: VarlinkPeer) async -> [PipelineStatus]
    /// The same in short.
    func summaries(of names: ArraySlice<String>) async -> [PipelineSummary]
    /// How several pipelines are wired.
    func descriptions(of names: ArraySlice<String>) async -> [PipelineDescription]
    /// What several pipelines have done.
    func counters(of names: ArraySlice<String>) async -> [PipelineCounters]
    /// Requests a run. With `wait`, returns when the first run that started after the request has ended, or the one
    /// that superseded it; cancelled, it returns early and the run goes on.
    ///
    /// - Parameters:
    ///   - force: passes `Retry-After` and budgets.
    ///   - unconditional: the run sends no validators.
    func refresh(_ name: String, wait: Bool, force: Bool, unconditional: Bool) async throws(ControlError)
        -> RefreshResult
    /// How a pipeline is wired; nil if it has gone away.
    func description(of name: String) async -> PipelineDescription?
    /// What a pipeline has done; nil if it has gone away.
    func counters(of name: String) async -> PipelineCounters?
    /// Has nothing of a pipeline run any more, or lets it run again.
    ///
    /// - Returns: whether that is new.
    func hold(_ name: String, _ isHeld: Bool, asker: String) async throws(ControlError) -> Bool
    /// Requests one further page of a set. With `wait`, returns when the run that loads it has ended; cancelled, it
    /// returns early and the run goes on.
    ///
    /// - Parameter place: the keys that lead to the branch; empty: the only place where there are more.
    func loadMore(_ name: String, at place: [String], wait: Bool) async throws(ControlError) -> LoadMoreResult
    /// Sets parameters of a pipeline, all together, or throws ``ControlError/parametersRefused(name:refusals:)``.
    ///
    /// - Parameters:
    ///   - settings: no parameter twice.
    ///   - othersToDefault: those that are not named go back to their defaults.
    ///   - asker: who wants it, in words.
    func setParameters(
        of name: String, to settings: [ParameterSetting], othersToDefault: Bool, asker: String
    ) async throws(ControlError) -> ControlMessage.ParametersSet
    /// The newest generations of a pipeline, newest first.
    ///
    /// - Parameter limit: how many at most; nil: all that are known of.
    func history(of name: String, limit: Int?) async throws(ControlError) -> ControlMessage.PastGenerations
    /// Opens the content of a generation that is kept, or throws ``ControlError/noSuchGeneration(name:number:kept:)``,
    /// ``ControlError/damagedGeneration(name:number:)``, ``ControlError/notReadable(name:number:)`` or
    /// ``ControlError/failed(name:reason:)``.
    ///
    /// - Parameter peer: for whom: rights on files decide, not those of the interface.
    func content(
        of name: String, generation: Int64, for peer: VarlinkPeer
    ) async throws(ControlError) -> any ControlContent
    /// Opens the content that a check refused, as ``content(of:generation:for:)``, or throws
    /// ``ControlError/noCandidate(name:)``.
    func candidate(of name: String, for peer: VarlinkPeer) async throws(ControlError) -> any ControlContent
    /// Makes the content that a check refused the copy, or throws ``ControlError/noCandidate(name:)``,
    /// ``ControlError/otherCandidate(name:digest:)`` or ``ControlError/pinned(name:number:)``.
    ///
    /// - Parameter digest: how the digest begins of what is meant; nil: whatever it is.
    func accept(
        _ name: String, _ digest: String?, asker: String
    ) async throws(ControlError) -> ControlMessage.RolledBack
    /// Makes a generation that is kept the current one; nil: the one before. Throws as ``content(of:generation:for:)``, and
    /// ``ControlError/pinned(name:number:)`` and ``ControlError/faultyPipeline(name:)``.
    func rollBack(
        _ name: String, to number: Int64?, asker: String
    ) async throws(ControlError) -> ControlMessage.RolledBack
    /// Keeps the copy of a pipeline from being replaced, or throws ``ControlError/noGeneration(name:)`` or
    /// ``ControlError/withdrawn(name:number:since:)``.
    func pin(_ name: String, asker: String) async throws(ControlError) -> ControlMessage.Pinned
    func unpin(_ name: String, asker: String) async throws(ControlError) -> ControlMessage.Pinned
    /// What an examination of the cache goes through, one step after the other.
    func examinationSteps() async throws(ControlError) -> [ExaminationStep]
    /// Examines a part of the cache, beside all else that the daemon does.
    ///
    /// - Parameter repair: repairs what can be repaired.
    func examine(_ step: ExaminationStep, repair: Bool) async throws(ControlError) -> ControlMessage.Examined
    /// What the cache has of pipelines that are not configured.
    func unowned() async throws(ControlError) -> [UnownedPipeline]
    /// Removes all that there is of these pipelines, but of those that are configured.
    ///
    /// - Returns: what was removed, and of what something is left.
    /// - Throws: if nothing was removed.
    func prune(_ names: [String], asker: String) async throws(ControlError) -> ControlMessage.Pruned
    func signals() async -> [SignalStatus]
    /// Fires the signal of a row of ``signals()`` by hand, and changes nothing else.
    ///
    /// - Parameter asker: who wants it, in words, for the signal's detail.
    /// - Returns: how many pipelines heard it.
    func fireSignal(_ name: String, asker: String) async throws(ControlError) -> Int
    /// Reads the configuration and applies it, or leaves everything as it was and throws
    /// ``ControlError/configurationRefused(_:)``.
    ///
    /// - Parameters:
    ///   - configurationOnly: leaves out the signal `reload`.
    ///   - asker: who wants it, in words: the signal's detail.
    func reload(
        configurationOnly: Bool, asker: String
    ) async throws(ControlError) -> (ReloadSummary, [ConfigurationDiagnostic])
    func logLevel() async -> LogLevel
    /// Takes effect at once, and lasts until the daemon ends.
    ///
    /// - Parameter asker: who wants it, in words.
    func setLogLevel(_ level: LogLevel, asker: String) async
    /// Where the daemon publishes what happens.
    var events: ControlEvents { get }
}

/// The content of a generation, to be read once.
package protocol ControlContent: Sendable {
    /// The next bytes, at most `limit`; none at the end.
    func next(_ limit: Int) async throws(ControlError) -> [UInt8]
}

/// Why the daemon did not do what a client asked for: the errors of `io.freshet.Control`, and the lack of rights.
package enum ControlError: Error, Hashable, Sendable {
    /// - `file`: one that would make it, and is not in force.
    case noSuchPipeline(name: String, suggestion: String?, file: String? = nil)
    /// The pipeline does not run: its configuration has faults.
    case faultyPipeline(name: String)
    case noGeneration(name: String)
    /// Readers find no copy, since it is too old for them.
    ///
    /// - `since`: microseconds since 1970.
    case withdrawn(name: String, number: Int64, since: Int64)
    /// The content of this generation is not kept; nil: there is none before the current one.
    case noSuchGeneration(name: String, number: Int64?, kept: [Int64])
    /// The file of this generation does not have its content any more.
    case damagedGeneration(name: String, number: Int64)
    /// The caller's user may not read the files of this pipeline; nil: what a check refused of it.
    case notReadable(name: String, number: Int64?)
    /// Nothing that a check refused is kept aside.
    case noCandidate(name: String)
    /// What is kept aside is something else than was meant.
    case otherCandidate(name: String, digest: String)
    /// The copy is pinned at this generation.
    case pinned(name: String, number: Int64)
    case noSuchSignal(name: String, suggestion: String?)
    /// The signal is not to be fired by hand: it asks for runs of single pipelines, as `Refresh` does.
    case cannotFire(name: String)
    case configurationRefused([ConfigurationDiagnostic])
    /// Nothing was set.
    case parametersRefused(name: String, refusals: [InvalidSetting])
    /// All pages are there.
    case nothingMore(name: String, path: [String])
    /// No pages are loaded on demand at this place.
    case noSuchBranch(name: String, path: [String], suggestion: String?)
    /// There are several places, and none was named.
    case severalBranches(name: String, more: MorePages)
    /// The pipeline has nothing that goes on; the sentence, whose subject is the pipeline, says why.
    case cannotLoadMore(name: String, reason: String)
    case tryLater(TryLaterHint)
    /// It was tried and did not succeed; the sentence says why.
    ///
    /// - `name`: the pipeline; nil: it is about the cache as a whole.
    case failed(name: String?, reason: String)
    /// It cannot do this at the moment; the sentence says why.
    case busy(String)
    /// The caller's user may not do this.
    case permissionDenied
    /// A parameter is missing or of the wrong kind; its name.
    case invalidParameter(String)
}
