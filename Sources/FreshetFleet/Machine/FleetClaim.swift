package import FreshetModel

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
