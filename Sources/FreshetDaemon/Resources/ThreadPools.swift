import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines

/// The daemon's threads for blocking work. Each kind of work has its own pool, so that work that hangs in one pool does
/// not delay the others.
///
/// Watchdog messages do not need these threads.
struct ThreadPools: Sendable {
    /// Reads configuration and credentials.
    let configuration = WorkerPool(threads: 2)
    /// Reads files of sources.
    let paths: PathPool
    /// Reads copies of other pipelines.
    let copies: PathPool
    /// Starts commands of sources.
    let commands = WorkerPool()
    /// Checks and starts the programs of hooks and checks.
    let programs = WorkerPool()
    /// Starts helpers.
    let helpers = WorkerPool(threads: 2)
    /// Computes digests and verifies signatures.
    let proofs = WorkerPool()
    /// Works on the index and on files of the cache.
    let cache = WorkerPool()

    init(clock: any EngineClock) {
        paths = PathPool(clock: clock)
        copies = PathPool(clock: clock)
    }

    /// The running work that started first.
    var oldestRunning: WorkerPool.RunningWork? {
        let others = [configuration, commands, programs, helpers, proofs, cache].map(\.oldestRunning)
        return (others + [paths.oldestRunning, copies.oldestRunning]).compactMap(\.self).min { $0.since < $1.since }
    }
}
