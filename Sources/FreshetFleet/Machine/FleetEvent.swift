package import FreshetModel

/// An event for ``FleetMachine``.
package enum FleetEvent: Sendable {
    /// There is a connection to the engine; `serverTime` is the time of its clock now.
    case connected(serverTime: WallTime)
    case disconnected
    case configured(FleetSettings)
    /// A notice of a verified record arrived.
    case head(FleetRecord)
    /// A change of the claim arrived, while claims are watched.
    case claim(FleetClaim)
    /// The answer to ``FleetAction/read``; the record is nil: there is none, or it does not count.
    ///
    /// `sequence` is the number of the stored head, whatever its record is; 0: there is none.
    case read(FleetRecord?, sequence: UInt64, FleetClaim)
    /// ``FleetAction/read`` failed.
    case readFailed
    /// A run begins. ``FleetAction/decide(_:)`` answers.
    case run(FleetRequest)
    /// The stored content of a head is damaged or incomplete.
    case unusable(ContentDigest)
    /// The run that waits for a decision was cancelled.
    case abandoned
    /// The answer to ``FleetAction/claim(expected:nonce:)`` or ``FleetAction/renew(expected:nonce:)``.
    case claimed(FleetWriteResult)
    /// The run that requested the content for all has ended.
    case ended(FleetRunEnd)
    /// A run has published the content of the head with this number, or found that it is the copy.
    case followed(UInt64)
    /// A run has requested the content for this member alone, and the copy has this content now.
    case fetchedAlone(ContentDigest)
    /// The answer to ``FleetAction/publish(_:expected:)``.
    case published(FleetWriteResult)
    /// The newest demand of an operator that is stored, by the sequence number of its message.
    case demanded(UInt64)
    /// The newest order of an operator about a roll-out.
    case ordered(FleetOrder)
    /// The answer to ``FleetAction/review(_:since:)``: as for ``read(_:sequence:_:)``, and how many members have reported
    /// a failure; nil: that cannot be read.
    case reviewed(FleetRecord?, sequence: UInt64, failures: Int?)
    case timer
}

/// An action that ``FleetMachine`` requests.
package enum FleetAction: Hashable, Sendable {
    /// Receive the changes of the claim from now on, or not any more.
    case watchClaim(Bool)
    /// Read head and claim.
    case read
    /// Store a claim in place of the message with this sequence number.
    case claim(expected: UInt64, nonce: String)
    case renew(expected: UInt64, nonce: String)
    /// Replace the claim by a pause.
    case pause(expected: UInt64, nonce: String, FleetPause)
    /// End the claim.
    case release(expected: UInt64)
    /// Store a new head in place of the message with this sequence number: the content has to be stored before.
    case publish(FleetHeadDraft, expected: UInt64)
    /// Read the head, and count the members that have reported a failure of this content since a time.
    case review(ContentDigest, since: WallTime)
    /// Store a record, whose content is stored, in place of the message with this sequence number.
    case rewrite(FleetRecord, expected: UInt64)
    case decide(FleetDecision)
    /// Fire the signal `fleet` of the pipeline.
    case fire(String)
    /// A verified record does not count.
    case reject(RecordRejection)
    /// The next instant of ``FleetEvent/timer``, which replaces the previous one; nil: never.
    case wake(at: ContinuousClock.Instant?)
}

/// A head that is to be stored; fleet, pipeline, fingerprint and publisher are the executor's.
package struct FleetHeadDraft: Hashable, Sendable {
    package var number: UInt64
    package var digest: ContentDigest
    package var size: UInt64
    package var validators: Validators
    package var checkedAt: WallTime
    /// The content of the previous head, which members may still be reading; nil: there is none.
    package var previous: ContentDigest?
    /// Whether the content has to be stored although the engine seems to have it.
    package var rewrites: Bool
    /// See ``FleetRecord/answeredDemand``.
    package var answeredDemand: UInt64?
    package var rollOut: FleetRecord.RollOut?
}
