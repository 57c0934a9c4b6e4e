internal import FreshetSignals
internal import Synchronization

/// What the daemon says to a pipeline, and what it can ask. From any thread.
extension PipelineRunner {
    /// Asks for a run, and awaits the end of the first one that starts after this call, or of the one that superseded
    /// it. Cancelled, it returns ``RefreshAnswer/stopped``; the run goes on.
    ///
    /// - Parameter force: passes `Retry-After` and an unreachable network too.
    package func refresh(force: Bool) async -> RefreshAnswer {
        let request = state.withLock { state in
            state.lastRequest += 1
            return state.lastRequest
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { state in
                    if !state.isClosed { state.waiters[request] = continuation }
                    return !state.isClosed
                }
                guard isOpen else { return continuation.resume(returning: .stopped) }
                // Cancelled before there was a waiter, nobody would wake it.
                if Task.isCancelled { return abandon(request) }
                mailbox.post(.refresh(request: request, force: force))
            }
        } onCancel: {
            abandon(request)
        }
    }

    /// Asks for a run without waiting for it; returns why it is refused, if it is.
    @discardableResult
    package func requestRefresh(force: Bool) -> RefreshRefusal? {
        let now = world.clock.now
        if let refusal = state.withLock({ $0.machine?.refusal(force: force, at: now) }) { return refusal }
        mailbox.post(.refresh(request: nil, force: force))
        return nil
    }

    /// Another configuration of the same name holds from now on. A run whose product would be another one is cancelled
    /// and started anew; otherwise state, run and back-off stay. It asks for no run by itself: fire `reload` after it.
    package func reconfigure(_ definition: PipelineDefinition, splay: Duration = .zero, host: UInt64) {
        let settings = RefreshSettings(definition, splay: splay, host: host)
        let sameProduct = state.withLock { state in
            defer {
                state.definition = definition
                state.settings = settings
            }
            return definition.makesTheSame(as: state.definition)
        }
        mailbox.post(.reconfigured(settings, sameProduct: sameProduct))
    }

    /// Tells the network's state for this pipeline's target, before or after its signal fires.
    package func networkChanged(_ network: NetworkState) {
        state.withLock { $0.network = network }
        mailbox.post(.network(network))
    }

    /// While it is held nothing starts. A run under way ends by itself.
    package func hold(_ held: Bool) {
        mailbox.post(.held(held))
    }

    /// Ends ``run()``, which has been or will be called, as cancelling its task does, and returns when it has ended.
    package func stop() async {
        await withCheckedContinuation { continuation in
            let isClosed = state.withLock { state in
                state.isStopping = true
                if !state.isClosed { state.stopWaiters.append(continuation) }
                return state.isClosed
            }
            if isClosed { continuation.resume() } else { mailbox.wake() }
        }
    }

    private func abandon(_ request: UInt64) {
        state.withLock { $0.waiters.removeValue(forKey: request) }?.resume(returning: .stopped)
    }

    /// All that is to be known of the pipeline now.
    package var status: PipelineStatus {
        let now = world.clock.now
        return state.withLock { state in
            var status = PipelineStatus(
                name: name, activity: .idle, generation: state.generation, lastCheck: state.lastCheck, lastCauses: [],
                run: state.order)
            guard let machine = state.machine else { return status }
            status.activity = machine.activity(at: now)
            if case .loading = status.activity {
                status.activity = .loading(LoadProgress(bytes: progress.bytes.load(ordering: .relaxed)))
            }
            status.waitsFor = machine.waitsFor(at: now)
            status.freshness = machine.freshness(at: now)
            status.lastRun = machine.lastRun
            status.lastCauses = state.order?.causes ?? machine.lastRun?.causes ?? []
            status.next = machine.nextRun(at: now)
            return status
        }
    }
}
