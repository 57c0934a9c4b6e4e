import FreshetModel

/// The result of a run that requested content for all, on its way to the engine.
struct HeadPublication: Hashable, Sendable {
    /// After so many attempts, the result of the run stays with this member.
    static let mostAttempts = 10

    private struct Result: Hashable, Sendable {
        var digest: ContentDigest
        var size: UInt64
        var validators: Validators
        /// When the check succeeded.
        var checked: ContinuousClock.Instant
    }

    /// Nil: nothing is being published.
    private var result: Result?
    /// The number of the last attempt.
    private var number: UInt64 = 0
    private var attempts = 0
    /// The sequence number of the head that is replaced: the one that was read before the claim.
    var expected: UInt64 = 0
    /// The content whose stored form is damaged or incomplete.
    var unusable: ContentDigest?
    /// The demand that was known when the request began, which the record answers; nil: none.
    var demand: UInt64?

    mutating func begin(
        _ digest: ContentDigest, size: UInt64, _ validators: Validators, checked: ContinuousClock.Instant
    ) {
        result = Result(digest: digest, size: size, validators: validators, checked: checked)
        attempts = 0
    }

    /// The head of the next attempt; nil: there is nothing to publish, or there were too many attempts.
    ///
    /// - Parameters:
    ///   - known: the newest record.
    ///   - plan: how new content goes to the fleet; nil: to all members.
    ///   - serverTime: the engine's clock at an instant.
    mutating func next(
        after known: KnownHead, _ plan: RollOutPlan?, serverTime: (ContinuousClock.Instant) -> WallTime
    ) -> FleetHeadDraft? {
        attempts += 1
        // Nothing can follow the last number: 2^64 checks were never made, so a publisher has skipped numbers.
        guard let result, attempts <= Self.mostAttempts, known.number < .max else { return nil }
        number = known.number + 1
        return FleetHeadDraft(
            number: number, digest: result.digest, size: result.size, validators: result.validators,
            checkedAt: serverTime(result.checked), previous: known.record?.digest,
            rewrites: result.digest == unusable, answeredDemand: demand ?? known.record?.answeredDemand,
            // A check does not end the roll-out of the content that it confirms, whatever this machine is configured to do.
            rollOut: known.record?.digest == result.digest
                ? known.record?.rollOut
                : plan?.rollOut(of: result.digest, replacing: known.record, at: serverTime(result.checked)))
    }

    /// Whether a stored record is the last attempt.
    func isAttempt(_ record: FleetRecord) -> Bool { record.number == number && record.digest == result?.digest }

    /// The last attempt is stored; returns its number.
    mutating func stored() -> UInt64 {
        if result?.digest == unusable { unusable = nil }
        return number
    }

    mutating func end() { result = nil }
}
