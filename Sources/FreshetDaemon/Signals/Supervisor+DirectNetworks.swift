import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals

/// Origins with a host name while there is no route to elsewhere. Such an origin may be on a directly connected
/// network.
extension Supervisor {
    /// Follows the directly connected networks for as long as the daemon runs.
    func followDirectNetworks(_ network: NetworkMonitor) {
        adopt { [weak self] in
            for await revision in network.directNetworks { await self?.directNetworksChanged(revision) }
        }
    }

    private func directNetworksChanged(_ revision: UInt64?) {
        // With a route to elsewhere, direct networks do not matter. If that route goes away, the direct networks change
        // too.
        guard targets[.elsewhere]?.watch.fact.isReachable == false else { return }
        for hosted in pipelines.values { publish(hosted, revision) }
        status.mayHaveChanged()
    }

    /// Publishes the direct networks to a pipeline that was added or changed.
    func updateDirectNetworks(_ hosted: RunningPipeline) {
        guard targets[.elsewhere]?.watch.fact.isReachable == false else { return }
        publish(hosted, parts?.network.directNetworks.value)
    }

    private func publish(_ hosted: RunningPipeline, _ revision: UInt64?) {
        hosted.runner.directNetworksChanged(mayBeOnDirectNetwork(hosted) ? revision : nil)
    }

    /// Whether the origin may be on a directly connected network, which only an attempt can show: the URL has a host
    /// name, and neither an address nor a network probe is configured.
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
