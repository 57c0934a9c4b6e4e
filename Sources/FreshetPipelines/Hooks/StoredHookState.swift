/// What readers see, by what tells it from all else: a generation, whose number is not enough where an index was made anew,
/// or that it was withdrawn.
package struct GenerationIdentity: Hashable, Sendable {
    package var number: UInt64
    /// SHA-256 in lower-case hexadecimal digits.
    package var digest: String
    /// Readers do not find it, and nothing in its place.
    package var isWithdrawn: Bool

    package init(number: UInt64, digest: String, isWithdrawn: Bool = false) {
        self.isWithdrawn = isWithdrawn
        self.number = number
        self.digest = digest
    }
}

extension CurrentGeneration {
    package var mark: GenerationIdentity {
        GenerationIdentity(number: number, digest: digest, isWithdrawn: withdrawnSince != nil)
    }
}

/// What is remembered of one hook of one pipeline across restarts. What is owed follows from it and from what readers
/// see: nothing is written when a generation is committed, and nothing of it can be lost with the power.
package struct StoredHookState: Hashable, Sendable {
    /// What it was told of last with success, or what readers saw when it was configured; nil: nothing yet.
    package var told: GenerationIdentity?
    /// What an attempt since then was for, ended or not: what it was told may not hold any more. Nil: there was none.
    package var tried: GenerationIdentity?
    /// How many attempts for `tried` have failed.
    package var attempts: Int
    /// When the first attempt failed since it last succeeded: wall-clock microseconds since 1970.
    package var failingSince: Int64?
    /// Why the last attempt failed, in one sentence.
    package var error: String?

    package init(
        told: GenerationIdentity? = nil, tried: GenerationIdentity? = nil, attempts: Int = 0,
        failingSince: Int64? = nil,
        error: String? = nil
    ) {
        self.told = told
        self.tried = tried
        self.attempts = attempts
        self.failingSince = failingSince
        self.error = error
    }

    /// Whether it has to be told of this.
    package func owes(_ current: GenerationIdentity) -> Bool { told != current || tried != nil }

    /// How many attempts for this have failed.
    package func attempts(for current: GenerationIdentity) -> Int { tried == current ? attempts : 0 }

    /// An attempt is about to begin.
    package func trying(_ target: GenerationIdentity) -> StoredHookState {
        var result = self
        result.tried = target
        result.attempts = attempts(for: target)
        return result
    }

    /// The attempt has succeeded.
    package func succeeded() -> StoredHookState { StoredHookState(told: tried) }

    /// The attempt has failed.
    ///
    /// - Parameter now: wall-clock microseconds since 1970.
    package func failed(_ error: String, at now: Int64) -> StoredHookState {
        var result = self
        result.attempts += 1
        result.failingSince = failingSince ?? now
        result.error = error
        return result
    }
}
