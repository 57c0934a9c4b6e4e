import FreshetPipelines
import Synchronization

/// The result of work on another thread that may hang. The first result is used, and later results are ignored.
final class Outcome<Success: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Result<Success, FetchError>, Never>)
        case settled(Result<Success, FetchError>)
        case taken
    }

    private let state = Mutex(State.open)

    /// The result; ``FetchError/cancelled`` as soon as the task is cancelled, since the work cannot be interrupted. One
    /// task may wait.
    var value: Result<Success, FetchError> {
        get async {
            await withTaskCancellationHandler {
                await firstResult
            } onCancel: {
                settle(.failure(.cancelled))
            }
        }
    }

    private var firstResult: Result<Success, FetchError> {
        get async {
            await withCheckedContinuation { continuation in
                let result = state.withLock { state -> Result<Success, FetchError>? in
                    guard case .settled(let result) = state else {
                        state = .awaited(continuation)
                        return nil
                    }
                    state = .taken
                    return result
                }
                if let result { continuation.resume(returning: result) }
            }
        }
    }

    /// Sets the result, on any thread.
    func settle(_ result: Result<Success, FetchError>) {
        let continuation = state.withLock { state -> CheckedContinuation<Result<Success, FetchError>, Never>? in
            switch state {
            case .open:
                state = .settled(result)
                return nil
            case .awaited(let continuation):
                state = .taken
                return continuation
            case .settled, .taken: return nil
            }
        }
        continuation?.resume(returning: result)
    }
}
