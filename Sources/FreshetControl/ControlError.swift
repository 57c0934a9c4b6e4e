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
