package import FreshetModel

/// The request of a run for content.
package struct FleetRequest: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// A planned check, or a signal of the environment: a recent check of any member answers it.
        case environment
        /// The signal `fleet`: a record that no run has followed answers it.
        case head
        /// The source is known to have new content: only a check that begins afterwards answers it.
        case demand
        /// As `demand`, by a person: without the engine, the origin is requested immediately.
        case operation

        var isDemand: Bool { self == .demand || self == .operation }
    }

    package var kind: Kind
    /// The digest of the copy; nil: there is none.
    package var copy: ContentDigest?

    package init(_ kind: Kind, copy: ContentDigest? = nil) {
        self.kind = kind
        self.copy = copy
    }
}

/// Where a run gets its content from.
package enum FleetDecision: Hashable, Sendable {
    /// From the fleet: this is the newest record. Its content may be the copy.
    case follow(FleetRecord)
    /// From the origin, for all. ``FleetEvent/ended(_:)`` must report the end of the run.
    case fetch
    /// From the origin, for this member alone: the engine does not answer.
    case fetchAlone
    /// The copy stays: this member has requested it alone, after the last check of the fleet, or it is newer than the
    /// content that a roll-out leaves to the members that it has not reached.
    case keep
    /// Not now.
    case wait(FleetObstacle)
}

/// Why a run gets no content now.
package enum FleetObstacle: Hashable, Sendable {
    /// The engine does not answer; this member requests the origin at this instant. Nil: it never does.
    case engineAway(fetchesAt: ContinuousClock.Instant?)
    /// The origin failed when another member requested it.
    case paused(FleetPause, by: String)
    /// This member does not fetch, and those that do have not checked in time, or have published nothing yet.
    case noFetcher(lastCheck: WallTime?)
}

/// The end of a run that requested content from the origin for all.
package enum FleetRunEnd: Hashable, Sendable {
    /// The check succeeded; `digest` and `size` are those of the copy.
    case succeeded(digest: ContentDigest, size: UInt64, Validators)
    case failed(reason: String, retryAfter: Duration?)
    /// This member's own checks rejected the content: another member may accept it, and tries first.
    case rejected
    /// It was cancelled, or its result is not for the others.
    case cancelled
}

/// The answer of the engine to a conditional write.
package enum FleetWriteResult: Hashable, Sendable {
    case stored(sequence: UInt64)
    /// Another member has written in between.
    case conflict
    /// There was no answer: it may have been stored or not.
    case unknown
}
