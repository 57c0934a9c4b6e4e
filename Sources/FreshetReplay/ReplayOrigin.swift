import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSignals

/// Answers the fetches of a replay from the recorded runs: like the run of the pipeline that started nearest to the
/// fetch, with its duration and its failure.
///
/// The origin of a pipeline has a *version*, which grows with each recorded run that found new content. So a run of the
/// replay finds new content if a recorded run had found it by then, and only once.
final class ReplayOrigin: Fetching {
    /// The recorded runs of one pipeline, oldest first.
    private struct Answers: Sendable {
        var runs: [RunStatus]
        /// The version of the origin after each run.
        var versions: [Int]

        init(_ runs: [RunStatus]) {
            self.runs = runs
            var version = 0
            versions = runs.map { run in
                if run.outcome == .changed { version += 1 }
                return version
            }
        }

        /// The index of the run that started nearest to an instant.
        func nearest(to instant: Int64) -> Int? {
            guard !runs.isEmpty else { return nil }
            var (low, high) = (0, runs.count)
            while low < high {
                let middle = (low + high) / 2
                if runs[middle].started < instant { low = middle + 1 } else { high = middle }
            }
            guard low > 0 else { return 0 }
            guard low < runs.count else { return low - 1 }
            return runs[low].started - instant < instant - runs[low - 1].started ? low : low - 1
        }
    }

    /// How long a run takes whose pipeline has no recorded run that ended.
    static let defaultDuration: Duration = .milliseconds(200)

    private let clock: ReplayClock
    private let answers: [String: Answers]
    /// The number of requests of the run in progress, by pipeline.
    private let requests = Lock<[String: Int]>([:])

    /// - Parameter runs: the recorded runs of each pipeline, oldest first.
    init(_ runs: [String: [RunStatus]], clock: ReplayClock) {
        self.clock = clock
        answers = runs.mapValues { runs in
            Answers(runs.filter { [.changed, .unchanged, .failed].contains($0.outcome) && $0.durationUSec != nil })
        }
    }

    /// The number of requests of a pipeline's run that has ended.
    func takeRequests(of pipeline: String) -> Int { requests.withLock { $0.removeValue(forKey: pipeline) ?? 0 } }

    /// The content of a version.
    static func version(_ number: Int) -> String { "version \(number)" }

    func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
        let name = ReplayedPipeline.name(of: request.source)
        let known = answers[name]
        let index = known?.nearest(to: clock.wallNow.microseconds)
        let run = index.flatMap { known?.runs[$0] }
        let count = max(1, Int(clamping: run?.requests ?? 1))
        requests.withLock { $0[name, default: 0] += count }
        for _ in 0..<count { request.asked() }
        await clock.pause(for: run?.durationUSec.map { .microseconds($0) } ?? Self.defaultDuration)
        guard !Task.isCancelled else { throw .cancelled }
        if let run, run.outcome == .failed {
            throw .failed(
                RunFailure(
                    run.failureKind.flatMap(RunFailure.Kind.init) ?? .transient, "as recorded",
                    retryAfter: run.retryAfterUSec.map { .microseconds($0) },
                    status: run.httpStatus.map { Int(clamping: $0) }))
        }
        let version = Self.version(index.flatMap { known?.versions[$0] } ?? 0)
        if request.validators?.entityTag == version { return .notModified(nil) }
        return .content(FetchedContent(bytes: Array(version.utf8), validators: Validators(entityTag: version)))
    }

    func resolve(_ reference: String, against base: String) -> WebAddress? { nil }
}
