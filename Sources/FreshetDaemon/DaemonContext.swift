import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetSystemd
import Logging

/// The services that all collaborators of one daemon use.
struct DaemonContext: Sendable {
    let options: DaemonOptions
    let directories: ServiceDirectories
    let loop: EventLoop
    let clock: LoopEngineClock
    let pools: ThreadPools
    let tasks: DaemonTasks
    let notifier: Notifier
    let log: Logger
    /// Limits the messages that each pipeline may cause.
    let limiter: LogLimiter
    /// Limits the messages that others can cause at any rate.
    let flapLog: FlapLog
    /// Redacts the secrets of the active configuration.
    let redactor: Redactor
    let events = ControlEvents()
    let readers = ContentReaders()

    init(options: DaemonOptions, loop: EventLoop, log: Logger, redactor: Redactor) throws {
        self.options = options
        directories = try DaemonDirectories.find(options)
        self.loop = loop
        clock = LoopEngineClock(loop: loop)
        pools = ThreadPools(clock: clock)
        notifier = Notifier(environment: options.environment)
        tasks = DaemonTasks(notifier)
        self.log = log
        limiter = LogLimiter(log: log, clock: clock)
        flapLog = FlapLog(log: log, limiter: limiter, clock: clock)
        self.redactor = redactor
    }
}

extension DaemonContext {
    /// The number of pipelines that are handled before other work gets the loop. They take some milliseconds.
    static let pipelinesPerPause = 64

    /// Yields the loop after every ``pipelinesPerPause`` pipelines. Call it in loops over all pipelines.
    ///
    /// - Parameters:
    ///   - index: the number of pipelines that were handled before.
    ///   - job: the name of the work in the log.
    @DaemonActor
    func giveWay(before index: Int, _ job: String) async {
        guard index.isMultiple(of: Self.pipelinesPerPause) else { return }
        if index > 0 { await Task.yield() }
        loop.nameJob(job)
    }
}
