import FreshetCache
import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import Logging

/// Holds. A hold belongs to the name, like a mask of systemd: a pipeline that is removed from the configuration and
/// added again is still held. A release ends the hold, and so does pruning the removed pipeline.
extension PipelineHost {
    /// Holds or releases a pipeline: see ``PipelineControl/hold(_:_:caller:)``.
    func hold(_ name: String, _ isHeld: Bool, caller: String) async throws(ControlError) -> Bool {
        let before = heldSince(name)
        let isNew = (before != nil) != isHeld
        let since = isHeld ? WallTime.now : nil
        // Set before the waits for the reload lock and the disk, so that no signal starts a run meanwhile.
        if isNew { setHeld(name, since: since) }
        // With the lock, a reload or a pruning that removes the pipeline happens either before, and the pipeline does
        // not exist, or after, and the pipeline was held.
        await lock.acquire()
        defer { lock.release() }
        guard self[name] != nil else { throw .noSuchPipeline(name: name, suggestion: nil) }
        // An earlier request for the same state has been stored by now, or has failed.
        if !isNew, (heldSince(name) != nil) == isHeld { return false }
        // Set again, because a pipeline that was added meanwhile has the stored state.
        setHeld(name, since: since)
        do throws(CacheError) {
            try await store.rememberHeld(name, since: since)
        } catch {
            setHeld(name, since: before)
            throw ControlError(error, of: name)
        }
        // A hold belongs to the name, so an invalid pipeline can be held and released too.
        context.log.log(
            isHeld ? .held : .released,
            text: !isHeld && invalid(name) != nil
                ? "released; the pipeline does not run while its configuration has errors" : nil,
            [.pipeline: .string(name), .caller: .string(caller)])
        status.mayHaveChanged()
        return true
    }

    /// Logs that a pipeline that becomes active is already held, for example from before it was removed or invalid. The
    /// message explains why the pipeline does not run.
    func logHeld(_ name: String) {
        guard heldSince(name) != nil else { return }
        context.limiter.log(
            .held, text: "still held: the pipeline does not run until it is released", [.pipeline: .string(name)])
    }

    func heldSince(_ name: String) -> WallTime? {
        running(name)?.runner.status.heldSince ?? invalid(name)?.remembered.heldSince
    }

    private func setHeld(_ name: String, since: WallTime?) {
        running(name)?.runner.hold(since: since)
        changeInvalid(name) { $0.heldSince = since }
    }
}
