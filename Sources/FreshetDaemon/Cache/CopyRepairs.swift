import FreshetCache
import FreshetModel
import Synchronization

/// Passes on the results of changes of copies that failed halfway: repairs that have to be tried again, and generations
/// that the index has got.
///
/// Safe to call from any thread.
final class CopyRepairs: Sendable {
    struct Handlers: Sendable {
        /// Tries to repair the copy of this pipeline later.
        var retry: @Sendable (_ pipeline: String) -> Void
        /// Reports a generation that readers saw before the index had it.
        var repaired: @Sendable (_ pipeline: String, CurrentGeneration) -> Void
    }

    private struct State {
        var handlers: Handlers?
        /// The pipelines whose repair has failed before there were handlers.
        var waiting: Set<String> = []
    }

    private let state = Mutex(State())

    /// Sets the handlers.
    func begin(_ handlers: Handlers) {
        let waiting = state.withLock { state in
            state.handlers = handlers
            defer { state.waiting = [] }
            return state.waiting
        }
        for pipeline in waiting { handlers.retry(pipeline) }
    }

    /// The repair of a pipeline's copy has failed.
    func retry(_ pipeline: String) {
        let handlers = state.withLock { state in
            if state.handlers == nil { state.waiting.insert(pipeline) }
            return state.handlers
        }
        handlers?.retry(pipeline)
    }

    /// What the cache calls.
    var changes: HalfFinishedChanges {
        var changes = HalfFinishedChanges()
        changes.left = { [self] in retry($0) }
        // Before there are handlers, no pipeline has begun: each reads its generation from the index.
        changes.repaired = { [self] in state.withLock { $0.handlers }?.repaired($0, $1) }
        return changes
    }
}
