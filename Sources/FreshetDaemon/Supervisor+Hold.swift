import FreshetCache
import FreshetControl
import FreshetPipelines
import FreshetSystemd
import Logging

/// Pipelines that the operator keeps from running.
extension Supervisor {
    func hold(_ name: String, _ isHeld: Bool, asker: String) async throws(ControlError) -> Bool {
        let store = try cacheStore()
        let before = heldSince(name)
        guard (before != nil) != isHeld else { return false }
        let since = isHeld ? WallClock.now : nil
        // At once: the disk may take its time, and something may fire.
        setHeld(name, since: since)
        do throws(CacheError) {
            try await store.rememberHeld(name, since: since)
        } catch {
            setHeld(name, since: before)
            throw ControlError(error, of: name)
        }
        log.say(isHeld ? .held : .released, [.pipeline: .string(name), .asker: .string(asker)])
        statusMayHaveChanged()
        return true
    }

    private func heldSince(_ name: String) -> Int64? {
        pipelines[name]?.runner.status.heldSince ?? faulty[name]?.remembered.heldSince
    }

    private func setHeld(_ name: String, since: Int64?) {
        pipelines[name]?.runner.hold(since: since)
        faulty[name]?.remembered.heldSince = since
    }
}
