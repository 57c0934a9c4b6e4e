import FreshetControl
import FreshetPipelines
import FreshetSignals
import Logging

/// Implements `--once`: runs each pipeline once, after those that it names in `after`.
@DaemonActor
struct OnceRun {
    private let host: PipelineHost
    private let pipelines: PipelineAdministrator
    private let limiter: LogLimiter

    init(_ host: PipelineHost, _ pipelines: PipelineAdministrator) {
        self.host = host
        self.pipelines = pipelines
        limiter = host.context.limiter
    }

    /// Runs the pipelines and waits for their hooks. In the exit status, a failure takes precedence over an invalid
    /// pipeline or hook, which takes precedence over `tryLater`.
    func run() async -> DaemonExit {
        var exit: DaemonExit = host.invalid.isEmpty && !host.hooks.hasInvalid ? .success : .configuration
        let after = Dictionary(uniqueKeysWithValues: host.running.map { ($0.runner.name, $0.definition.refresh.after) })
        for names in Self.dependencyGroups(after) {
            await withTaskGroup(of: DaemonExit.self) { group in
                for name in names {
                    // A held pipeline does not run, which is not a failure.
                    if host.running(name)?.runner.status.heldSince != nil { continue }
                    group.addTask { await run(name) }
                }
                for await one in group where one == .failure || exit == .success { exit = one }
            }
        }
        // Hooks of one pipeline run already. The daemon or the next `--once` retries a hook that fails.
        host.hooks.scheduler.endBursts()
        await host.hooks.scheduler.waitUntilSettled()
        return host.hooks.scheduler.failing > 0 ? .failure : exit
    }

    private func run(_ name: String) async -> DaemonExit {
        guard await canBeReached(name), let result = try? await pipelines.refresh(name, wait: true, force: false) else {
            return .failure
        }
        return result.failure != nil ? .failure : result.tryLater != nil ? .tryLater : .success
    }

    /// Whether a pipeline can run. It does not wait for the network, and makes a network probe only once.
    private func canBeReached(_ name: String) async -> Bool {
        guard let pipeline = host.running(name), pipeline.definition.needsNetwork else { return true }
        let state = host.networks.feed(of: pipeline.target).state
        let isDirect = pipeline.mayBeOnDirectNetwork && host.networks.directNetworks.value != nil
        var obstacle = state.reachable || isDirect ? nil : host.networks.path(to: pipeline.target)
        if obstacle == nil, let probe = pipeline.definition.refresh.needsNetwork.probe {
            obstacle = await host.engine.refusal(of: probe, epoch: state.epoch)
        }
        guard let obstacle else { return true }
        limiter.log(.notRun, [.pipeline: .string(name), .path: .string(obstacle)])
        return false
    }

    /// Groups pipelines by their dependencies, so that each pipeline is in a later group than those it runs after.
    ///
    /// - Parameter after: the names that each pipeline runs after, without a cycle. A name that is not a key does not
    ///   run.
    nonisolated static func dependencyGroups(_ after: [String: [String]]) -> [[String]] {
        var awaited = after.mapValues { $0.count { after[$0] != nil } }
        var successors: [String: [String]] = [:]
        for (name, before) in after {
            for other in before { successors[other, default: []].append(name) }
        }
        var groups: [[String]] = []
        var group = awaited.filter { $0.value == 0 }.map(\.key)
        while !group.isEmpty {
            groups.append(group.sorted())
            group = group.flatMap { successors[$0] ?? [] }.filter { name in
                awaited[name, default: 0] -= 1
                return awaited[name] == 0
            }
        }
        return groups
    }
}
