/// Starts operations on buckets, a limited number at a time, in their order.
struct FleetJobs {
    typealias Job = @Sendable () async -> Void

    /// A job that starts now.
    struct Start: Sendable {
        var job: Job
        /// Whether it counts for the limit.
        var isLimited: Bool
    }

    private let limit: Int
    private let starts: AsyncStream<Start>.Continuation
    private var running = 0
    private var waiting: [Job] = []
    private var next = 0

    init(limit: Int, _ starts: AsyncStream<Start>.Continuation) {
        self.limit = limit
        self.starts = starts
    }

    /// Starts a job that lasts.
    func start(_ job: @escaping Job) { starts.yield(Start(job: job, isLimited: false)) }

    mutating func add(_ job: @escaping Job) {
        guard running < limit else { return waiting.append(job) }
        running += 1
        starts.yield(Start(job: job, isLimited: true))
    }

    mutating func ended() {
        guard next < waiting.count else {
            (waiting, next) = ([], 0)
            running -= 1
            return
        }
        starts.yield(Start(job: waiting[next], isLimited: true))
        next += 1
        // Each job is moved at most once on average.
        if next > waiting.count / 2 {
            waiting.removeFirst(next)
            next = 0
        }
    }
}
