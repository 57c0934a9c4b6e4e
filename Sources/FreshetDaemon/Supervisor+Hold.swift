import FreshetCache
import FreshetControl
import FreshetPipelines
import FreshetSystemd
import Logging

/// Pipelines that the operator keeps from running.
///
/// A hold belongs to the name, like a mask of systemd's: a pipeline that is removed from the configuration and comes back is
/// held still. It goes with a release, or with all else that is kept of a pipeline that is removed, when that is pruned.
extension Supervisor {
    func hold(_ name: String, _ isHeld: Bool, asker: String) async throws(ControlError) -> Bool {
        let store = try cacheStore()
        let before = heldSince(name)
        let isNew = (before != nil) != isHeld
        let since = isHeld ? WallClock.now : nil
        // At once: what comes before it and the disk may take their time, and something may fire.
        if isNew { setHeld(name, since: since) }
        // A reload or a pruning that removes the pipeline comes before, and then there is nothing to hold, or after, and
        // then it was held.
        await takeReloadTurn()
        defer { endReloadTurn() }
        guard pipelines[name] != nil || faulty[name] != nil else { throw .noSuchPipeline(name: name, suggestion: nil) }
        // What another one has said before is on the disk by now, or has come to nothing.
        if !isNew, (heldSince(name) != nil) == isHeld { return false }
        // Again: a pipeline that has come back meanwhile knows what was remembered until now.
        setHeld(name, since: since)
        do throws(CacheError) {
            try await store.rememberHeld(name, since: since)
        } catch {
            setHeld(name, since: before)
            throw ControlError(error, of: name)
        }
        // A hold is the name's: what has faults is held, and released, for when they are mended.
        log.say(
            isHeld ? .held : .released,
            text: !isHeld && faulty[name] != nil ? "released, and does not run as long as it has faults" : nil,
            [.pipeline: .string(name), .asker: .string(asker)])
        statusMayHaveChanged()
        return true
    }

    /// A pipeline that comes into force may be held from before it was removed, or had faults: who has brought it back is
    /// told why it does not run.
    func tellHeld(_ name: String) {
        guard heldSince(name) != nil else { return }
        news.say(.held, text: "held still: nothing of it runs until it is released", [.pipeline: .string(name)])
    }

    private func heldSince(_ name: String) -> Int64? {
        pipelines[name]?.runner.status.heldSince ?? faulty[name]?.remembered.heldSince
    }

    private func setHeld(_ name: String, since: Int64?) {
        pipelines[name]?.runner.hold(since: since)
        faulty[name]?.remembered.heldSince = since
    }
}
