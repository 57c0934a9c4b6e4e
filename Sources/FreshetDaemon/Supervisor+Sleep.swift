import FreshetControl
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging

/// The machine's sleep, its wake, and its wall clock.
extension Supervisor {
    /// Watches over sleep for the network and the pipelines: at a wake an epoch begins and all pipelines know of it
    /// before the signal fires.
    nonisolated func watchSleep(
        _ bus: BusConnection, _ network: NetworkMonitor, _ engine: PipelineEngine
    ) -> SleepMonitor {
        SleepMonitor(loop, bus: bus) {
            network.beginEpoch()
            engine.woke()
        }
    }

    /// Tells the pipelines, the journal and those who follow what becomes of it.
    func followSleep() {
        guard let parts else { return }
        let (sleep, engine) = (parts.sleep, parts.engine)
        adopt { [weak self, book] in
            for await fact in sleep.facts {
                engine.goesToSleep(fact.isGoingToSleep)
                book.fact(SignalName.resume, fact.description)
                await self?.sayMissing(fact)
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

    private func sayMissing(_ fact: SleepFact) {
        switch sleepNews.heard(fact.logind) {
        case .missing(let reason):
            log.say(.logindMissing, [.error: .string(reason)])
        case .found: log.say(.logindFound)
        case nil: break
        }
    }

    private func resumed(_ causes: [Cause], _ fact: SleepFact) {
        guard let cause = causes.first, sleepNews.woke(fact) else { return }
        var fields: [JournalField: Logger.MetadataValue] = [:]
        if let slept = fact.lastSleep { fields[.slept] = .string("\(slept.rounded)") }
        if let detail = cause.last.detail { fields[.detail] = .string(detail) }
        log.say(.resumed, fields)
    }

    private func clockStepped(_ detail: String?) {
        var fields: [JournalField: Logger.MetadataValue] = [:]
        if let detail { fields[.detail] = .string(detail) }
        log.say(.clockStepped, fields)
        statusMayHaveChanged()
    }

    /// The row of `freshetctl signals`.
    func resumeStatus() -> SignalStatus {
        let fact = parts?.sleep.fact
        return book.status(
            SignalName.resume, fact: fact?.text(at: .now) ?? "not known", unavailable: fact?.missing,
            ignored: parts?.sleep.minorChanges)
    }
}
