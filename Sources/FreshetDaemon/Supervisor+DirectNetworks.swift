import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals

/// Origins that are known by name, where there is no route to elsewhere: they may be on a network of this machine's own.
extension Supervisor {
    /// Follows the directly connected networks for as long as the daemon runs.
    func followDirectNetworks(_ network: NetworkMonitor) {
        adopt { [weak self] in
            for await revision in network.directNetworks { await self?.directNetworksChanged(revision) }
        }
    }

    private func directNetworksChanged(_ revision: UInt64?) {
        // With a route to elsewhere nobody has to look for an origin. Should that route go, the networks change.
        guard targets[.elsewhere]?.watch.fact.isReachable == false else { return }
        for hosted in pipelines.values { tell(hosted, revision) }
        statusMayHaveChanged()
    }

    /// Tells a pipeline that was added, or has another configuration.
    func tellDirectNetworks(_ hosted: RunningPipeline) {
        guard targets[.elsewhere]?.watch.fact.isReachable == false else { return }
        tell(hosted, parts?.network.directNetworks.value)
    }

    private func tell(_ hosted: RunningPipeline, _ revision: UInt64?) {
        hosted.runner.directNetworksChanged(mayBeOnDirectNetwork(hosted) ? revision : nil)
    }

    /// Whether an attempt shows if the network leads to the origin: the origin is known by name, and neither an address nor a
    /// proof of the network is configured.
    func mayBeOnDirectNetwork(_ hosted: RunningPipeline) -> Bool {
        let definition = hosted.definition
        guard hosted.target == .elsewhere, definition.needsNetwork, definition.refresh.needsNetwork.probe == nil else {
            return false
        }
        return definition.sources.contains { source in
            guard case .http(let source) = source else { return false }
            return !source.isLocal
        }
    }
}
