/// The state of one hook of one pipeline, kept across restarts. Whether the hook is pending follows from this state and
/// from the current generation: a commit writes nothing here, so a power failure cannot lose a pending hook.
package struct StoredHookState: Hashable, Sendable {
    /// The generation of the last successful run, or the current one when the hook was configured; nil: there was none.
    package var notified: GenerationIdentity?
    /// The generation of an attempt since then, ended or not: the effect of `notified` may not hold any more. Nil:
    /// there was no attempt.
    package var tried: GenerationIdentity?
    /// The number of failed attempts for `tried`.
    package var attempts: Int
    /// When the first attempt since the last success failed.
    package var failingSince: WallTime?
    /// Why the last attempt failed, in one sentence.
    package var error: String?

    package init(
        notified: GenerationIdentity? = nil, tried: GenerationIdentity? = nil, attempts: Int = 0,
        failingSince: WallTime? = nil, error: String? = nil
    ) {
        self.notified = notified
        self.tried = tried
        self.attempts = attempts
        self.failingSince = failingSince
        self.error = error
    }

    /// Whether the hook has to run for this generation.
    package func isPending(_ current: GenerationIdentity) -> Bool { notified != current || tried != nil }

    /// The number of failed attempts for this generation.
    package func attempts(for current: GenerationIdentity) -> Int { tried == current ? attempts : 0 }

    /// An attempt is about to begin.
    package func trying(_ target: GenerationIdentity) -> StoredHookState {
        var result = self
        result.tried = target
        result.attempts = attempts(for: target)
        return result
    }

    /// The attempt has succeeded.
    package func succeeded() -> StoredHookState { StoredHookState(notified: tried) }

    /// The attempt has failed.
    package func failed(_ error: String, at now: WallTime) -> StoredHookState {
        var result = self
        result.attempts += 1
        result.failingSince = failingSince ?? now
        result.error = error
        return result
    }
}
