import FreshetModel

/// Runs on one of several mirrors.
extension RunExecutor {
    /// What a run knows about the mirrors of its pipeline.
    struct MirrorContext: Sendable {
        let records: MirrorRecords
        /// The fraction of this host and pipeline, for a stable order.
        var share = 0.0
        /// Whether the run ignores `Retry-After`.
        var isForced = false
    }

    /// The attempt at one mirror.
    struct MirrorAttempt: Sendable {
        let records: MirrorRecords
        let stopwatch: AnswerStopwatch
        /// Whether no other mirror follows, so that content that does not match is handled as without mirrors.
        let isLast: Bool
    }

    /// Asks one mirror after the other until one works. Each has its own validators, since they are bound to the URL.
    func runOnMirrors(_ mirrors: Mirrors) async throws(FetchError) -> Success {
        let context = mirrorContext ?? MirrorContext(records: MirrorRecords())
        let (records, definitions) = (context.records, definition.alternatives)
        let plan = records.plan(
            mirrors, share: context.share, epoch: epoch, isForced: context.isForced, at: world.clock.now)
        var failures: [RunFailure] = []
        for (position, index) in plan.enumerated() {
            // The machine has allowed the first request.
            if position > 0, (try? progress.allowRequest()) == nil { break }
            let url = mirrors.list[index].url
            progress.recordMirror(mirrors.list[index].name)
            let attempt = MirrorAttempt(
                records: records, stopwatch: AnswerStopwatch(world.clock), isLast: position == plan.count - 1)
            var run = self
            run.definition = definitions[index]
            run.mirror = attempt
            records.asks(url)
            do throws(FetchError) {
                let success = try await run.runOnAnswer()
                records.worked(url, after: attempt.stopwatch.time, at: world.clock.now)
                return success
            } catch {
                guard case .failed(let failure) = error, failure.isOfOneMirror else { throw error }
                records.failed(url, retryAfter: failure.retryAfter, at: world.clock.now)
                failures.append(failure)
            }
        }
        throw .failed(RunFailure(ofMirrors: failures, wait: records.wait(mirrors, at: world.clock.now)))
    }
}

extension RunFailure {
    /// Whether another mirror may work: the mirror did not answer, declined the request, or sent other content than
    /// its digest or signature says.
    fileprivate var isOfOneMirror: Bool {
        switch kind {
        case .connection, .transient, .certificateDate, .refused: true
        case .content: isMismatch
        case .local, .absent, .budget, .deadline: false
        }
    }

    /// The failure of a run after all mirrors have failed.
    ///
    /// A failure that is not about the content decides when the next attempt comes: then the content may be right at a
    /// mirror that did not answer. Of these, one that is not a missing connection decides.
    ///
    /// - Parameter wait: the rest of the shortest `Retry-After`, if all mirrors have sent one; nil: not all have.
    fileprivate init(ofMirrors failures: [RunFailure], wait: Duration?) {
        let failure =
            failures.first { $0.rejection == nil && $0.kind != .connection } ?? failures.first { $0.rejection == nil }
            ?? failures.last
        guard var failure else {
            self.init(.transient, "all mirrors have asked for a pause (Retry-After)", retryAfter: wait)
            return
        }
        if failures.count > 1 {
            failure.message = "all mirrors failed: \(failures.map(\.message).joined(separator: "; "))"
            failure.quotesContent = failures.contains(where: \.quotesContent)
        }
        failure.retryAfter = wait
        self = failure
    }
}
