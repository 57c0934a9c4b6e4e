package import FreshetModel

/// What a fleet knows about the content of one pipeline: which content is the newest, and what was learned when it
/// was fetched. A publisher signs it, so that each member can check who made it.
///
/// A record says nothing about the quality of the content: each member runs its own checks.
package struct FleetRecord: Hashable, Sendable {
    /// The content goes to a part of the fleet first; the other members keep the content before it.
    package struct RollOut: Hashable, Sendable {
        /// Members whose stable place is below this part may take the content: parts of 1,000,000.
        package var share: UInt32
        /// When this step began, by the clock of the server.
        package var since: WallTime
        package var isHalted = false
        /// The content that the other members keep.
        package var before: ContentDigest
        /// Its size in bytes.
        package var sizeBefore: UInt64
        /// The number of the newest record with that content.
        package var numberBefore: UInt64
        /// The sequence number of the last order of an operator that was carried out; 0: none.
        package var order: UInt64 = 0

        /// All members.
        package static let wholeFleet: UInt32 = 1_000_000

        package init(share: UInt32, since: WallTime, before: ContentDigest, sizeBefore: UInt64, numberBefore: UInt64) {
            self.share = share
            self.since = since
            self.before = before
            self.sizeBefore = sizeBefore
            self.numberBefore = numberBefore
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
    /// The number of members that the publisher knows. It bounds the rate of the fallback and of reports.
    package var members: UInt32 = 1
    /// Nil: all members may take the content.
    package var rollOut: RollOut?

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

    /// The record with the content that a member may have now.
    ///
    /// - Parameters:
    ///   - place: its place in roll-outs of this content, less than ``RollOut/wholeFleet``.
    ///   - copy: its copy: a member that has the content already keeps it.
    func available(to place: UInt32, with copy: ContentDigest?) -> FleetRecord {
        guard let rollOut, place >= rollOut.share, copy != digest else { return self }
        var available = self
        (available.digest, available.size, available.validators) = (rollOut.before, rollOut.sizeBefore, Validators())
        return available
    }
}
