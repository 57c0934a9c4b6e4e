package import FreshetModel

/// What a fleet knows about the content of one pipeline: which content is the newest, and what was learned when it
/// was fetched. A publisher signs it, so that each member can check who made it.
///
/// A record says nothing about the quality of the content: each member runs its own checks.
package struct FleetRecord: Hashable, Sendable {
    /// The part of the fleet that may take the content.
    package struct RollOut: Hashable, Sendable {
        /// Members whose stable place is below this part may take the content: parts of 1,000,000.
        package var share: UInt32
        /// When this step began.
        package var since: WallTime
        package var isHalted: Bool

        package init(share: UInt32, since: WallTime, isHalted: Bool = false) {
            self.share = share
            self.since = since
            self.isHalted = isHalted
        }
    }

    package var fleet: String
    package var pipeline: String
    /// The digest of all that decides what the content is (source, transforms, parameters, format): members with
    /// another definition do not share it.
    package var fingerprint: ContentDigest
    /// Counts the records of this pipeline and fingerprint, from 1. It only grows: old content that is published again
    /// has a new number too.
    package var number: UInt64
    package var digest: ContentDigest
    /// Bytes.
    package var size: UInt64
    package var validators = Validators()
    /// When the origin last confirmed the content, by the clock of the server.
    package var checkedAt: WallTime
    /// The machine that fetched it.
    package var madeBy: String
    /// The sequence number of the last demand of an operator that this answers; nil: none.
    package var answeredDemand: UInt64?
    /// The number of members that the publisher knows; it bounds the rate of fallback.
    package var members: UInt32 = 1
    /// The time over which members spread the transfer of the content, in milliseconds.
    package var spreadMilliseconds: UInt32 = 0
    /// Nil: all members may take the content.
    package var rollOut: RollOut?
    /// The origin's own signature file (minisign), which members check again; nil: there is none.
    package var minisign: String?

    package init(
        fleet: String, pipeline: String, fingerprint: ContentDigest, number: UInt64, digest: ContentDigest,
        size: UInt64, checkedAt: WallTime, madeBy: String
    ) {
        self.fleet = fleet
        self.pipeline = pipeline
        self.fingerprint = fingerprint
        self.number = number
        self.digest = digest
        self.size = size
        self.checkedAt = checkedAt
        self.madeBy = madeBy
    }
}
