import FreshetCache
import FreshetControl
import FreshetPipelines
import FreshetSystemSignals
import FreshetSystemd
import Glibc
import Logging

/// The status of the daemon, its configuration and its log level, for clients.
@DaemonActor
final class DaemonAdministrator: DaemonControl {
    nonisolated let events: ControlEvents
    private let parts: DaemonParts
    private let overview: PipelineOverview
    private let networks: NetworkSources
    private let reloader: ConfigurationReloader
    private let slowJobs: SlowJobLog
    private let log: Logger
    /// The log level of `log`.
    private let threshold: LogThreshold
    /// When the daemon started: wall-clock microseconds since 1970.
    private let started: Int64
    /// The network's state in the last status, and its text: programs that poll the daemon need not make it each time.
    private var network: (fact: NetworkFact, text: String)?

    init(
        _ context: DaemonContext, _ parts: DaemonParts, _ overview: PipelineOverview, _ networks: NetworkSources,
        _ reloader: ConfigurationReloader, _ slowJobs: SlowJobLog, _ threshold: LogThreshold, started: Int64
    ) {
        events = context.events
        log = context.log
        self.parts = parts
        self.overview = overview
        self.networks = networks
        self.reloader = reloader
        self.slowJobs = slowJobs
        self.threshold = threshold
        self.started = started
    }

    func daemon() async -> DaemonStatus {
        await overview.update()
        let fact = networks.elsewhere.watch.fact
        let usage = parts.cache.space.usage
        let slow = slowJobs.status
        let memory = parts.memory
        return DaemonStatus(
            version: Version.current, pid: Int64(getpid()), since: started,
            network: text(of: fact), networkReachable: fact.isReachable,
            pipelines: overview.counts,
            failingHooks: parts.hooks.failing > 0 ? Int64(parts.hooks.failing) : nil,
            cacheBytes: usage.bytes, cacheLimit: usage.limit,
            memoryBytes: Int64(clamping: memory.counts.taken), memoryLimit: Int64(clamping: memory.limit),
            configurationSince: reloader.since, refusedReload: reloader.refused,
            slowJobs: slow.isEmpty ? nil : slow,
            invalidHooks: reloader.invalidHooks.isEmpty ? nil : reloader.invalidHooks)
    }

    private func text(of fact: NetworkFact) -> String {
        if let network, network.fact == fact { return network.text }
        let text = fact.description
        network = (fact, text)
        return text
    }

    func inactiveFile(_ name: String) async -> String? { await reloader.reader.file(ofPipeline: name) }

    func reload(
        _ scope: ReloadScope, caller: String
    ) async throws(ControlError) -> (ReloadSummary, [ConfigurationDiagnostic]) {
        try await reloader.reload(scope, detail: caller)
    }

    func logLevel() -> LogLevel { LogLevel(threshold.level) }

    func setLogLevel(_ level: LogLevel, caller: String) {
        let before = threshold.level
        let new = Logger.Level(level)
        guard new != before else { return }
        // Logged at the lower of the two levels, so that a change to a less verbose level is logged too.
        threshold.level = min(before, new)
        log.log(.logLevel, [.level: .string(level.rawValue), .caller: .string(caller)])
        threshold.level = new
    }
}

extension LogLevel {
    init(_ level: Logger.Level) {
        self =
            switch level {
            case .trace: .trace
            case .debug: .debug
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            case .critical: .critical
            }
    }
}

extension Logger.Level {
    init(_ level: LogLevel) {
        self =
            switch level {
            case .trace: .trace
            case .debug: .debug
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            case .critical: .critical
            }
    }
}
