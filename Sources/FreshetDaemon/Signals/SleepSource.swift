import FreshetControl
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging

/// Sleep and wake of the machine, and steps of its wall clock.
extension Supervisor {
    /// Watches sleep for the network and the pipelines. At a wake, a new network epoch begins and all pipelines are
    /// notified before the signal fires.
    nonisolated func watchSleep(
        _ bus: BusConnection, _ network: NetworkMonitor, _ engine: PipelineEngine
    ) -> SleepMonitor {
        SleepMonitor(loop, bus: bus) {
            network.beginEpoch()
            engine.woke()
        }
    }

    /// Passes sleep, wake and clock steps to the pipelines, and logs and publishes them.
    func followSleep() {
        guard let parts else { return }
        let (sleep, engine) = (parts.sleep, parts.engine)
        adopt { [weak self, registry] in
            for await fact in sleep.facts {
                engine.goesToSleep(fact.isGoingToSleep)
                registry.fact(SignalName.resume, fact.description)
                await self?.logMissing(fact)
            }
        }
        adopt { [weak self] in
            for await causes in sleep.resumed.causes { await self?.resumed(causes, sleep.fact) }
        }
        adopt { [weak self] in
            for await causes in sleep.clockStepped.causes {
                engine.clockStepped()
                await self?.clockStepped(causes.last?.last.detail)
            }
        }
    }

    private func logMissing(_ fact: SleepFact) {
        switch sleepLogFilter.changed(fact.logind) {
        case .missing(let reason):
            flapLog.log(.logindMissing, about: "logind", [.error: .string(reason)])
        case .found: flapLog.log(.logindFound, about: "logind", [:])
        case nil: break
        }
    }

    private func resumed(_ causes: [Cause], _ fact: SleepFact) {
        guard let cause = causes.first, sleepLogFilter.woke(fact) else { return }
        var fields: [JournalField: Logger.MetadataValue] = [:]
        if let slept = fact.lastSleep { fields[.slept] = .string("\(slept.rounded)") }
        if let detail = cause.last.detail { fields[.detail] = .string(detail) }
        limiter.log(.resumed, fields)
    }

    private func clockStepped(_ detail: String?) {
        var fields: [JournalField: Logger.MetadataValue] = [:]
        if let detail { fields[.detail] = .string(detail) }
        limiter.log(.clockStepped, fields)
        status.mayHaveChanged()
    }

    /// The row `resume` of `freshetctl signals`.
    func resumeStatus() -> SignalStatus {
        let fact = parts?.sleep.fact
        return registry.status(
            SignalName.resume, fact: fact?.text(at: .now) ?? "not known", unavailable: fact?.missing,
            ignored: parts?.sleep.minorChanges)
    }
}
