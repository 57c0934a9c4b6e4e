package import FreshetModel

/// A verified record and its place in the stream of heads.
package struct FleetHead: Hashable, Sendable {
    package var record: FleetRecord
    /// The sequence number of its message; a new head is stored only in place of this one.
    package var sequence: UInt64

    package init(_ record: FleetRecord, sequence: UInt64) {
        self.record = record
        self.sequence = sequence
    }
}

/// The claim of a pipeline: which member requests its content from the origin now, for all.
package struct FleetClaim: Hashable, Sendable {
    /// The member that holds the claim.
    package struct Holder: Hashable, Sendable {
        package var machine: String
        /// Distinguishes two claims of the same machine.
        package var nonce: String
        /// Set if the request failed: the pause until the next one.
        package var pause: FleetPause?

        package init(machine: String, nonce: String, pause: FleetPause? = nil) {
            self.machine = machine
            self.nonce = nonce
            self.pause = pause
        }
    }

    /// The sequence number of its message, or of the marker after its end; 0: there was no claim yet. A new claim is
    /// stored only in place of this one.
    package var sequence: UInt64
    /// Nil: nobody holds the claim.
    package var holder: Holder?
    /// By the engine's clock; nil: not known.
    package var storedAt: WallTime?

    package init(sequence: UInt64 = 0, holder: Holder? = nil, storedAt: WallTime? = nil) {
        self.sequence = sequence
        self.holder = holder
        self.storedAt = storedAt
    }

    /// Whether the holder's time is over: the engine should have removed the claim. One that was stored without a
    /// lifetime must not stop a fleet for good.
    func isOver(at time: WallTime?) -> Bool {
        guard let holder, let storedAt, let time else { return false }
        return storedAt.duration(to: time) > (holder.pause?.duration ?? FleetSettings.claimLifetime) + .seconds(1)
    }
}

/// No member requests the content for a while, because the last request failed.
package struct FleetPause: Hashable, Sendable {
    /// From the moment when it was stored.
    package var duration: Duration
    /// How many requests failed in a row.
    package var failures: UInt32
    /// Why, for people.
    package var reason: String

    /// The longest pause that counts; a longer one of another member is shortened.
    package static let longest: Duration = .seconds(3_600)
    /// The pause after the first failure without a `Retry-After`. It doubles with each further failure.
    static let first: Duration = .seconds(30)

    package init(duration: Duration, failures: UInt32, reason: String) {
        self.duration = min(max(.seconds(1), duration), Self.longest)
        self.failures = failures
        self.reason = reason
    }

    /// The pause after a failure.
    ///
    /// - Parameters:
    ///   - before: the failures in a row before this one.
    ///   - retryAfter: the time that the origin demands.
    init(after before: UInt32, retryAfter: Duration?, reason: String) {
        let failures = before == .max ? before : before + 1
        // 30 s times 2^7 is more than the longest pause.
        let own = min(Self.longest, Self.first * (1 << min(7, before)))
        self.init(duration: max(own, retryAfter ?? .zero), failures: failures, reason: reason)
    }
}

/// What a run of a pipeline needs.
package struct FleetRequest: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// A planned check, or a signal of the environment: a recent check of any member answers it.
        case environment
        /// The signal `fleet`: a head that no run has followed answers it.
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
    /// From the fleet: this is the newest head. Its content may be the copy.
    case follow(FleetHead)
    /// From the origin, for all. ``FleetMachine/Event/ended(_:)`` must report the end of the run.
    case fetch
    /// From the origin, for this member alone: the engine does not answer.
    case fetchAlone
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
