package import FreshetModel

/// The steps in which new content goes to a fleet, as the machine that fetches it is configured.
package struct RollOutPlan: Hashable, Sendable {
    /// The parts of the fleet, growing, in parts of 1,000,000; the last one is all of it.
    package var steps: [UInt32]
    /// How long a step lasts.
    package var length: Duration
    /// When so many members report a failure in one step, the roll-out is halted.
    package var mostFailures: UInt32

    package init(steps: [UInt32], length: Duration, mostFailures: UInt32) {
        self.steps = steps
        self.length = length
        self.mostFailures = mostFailures
    }

    /// The steps of a machine that fetches and has none configured: it goes on with a roll-out that another one began.
    static let standard = RollOutPlan(steps: [10_000, 100_000, 1_000_000], length: .seconds(1_800), mostFailures: 3)

    /// The roll-out of new content that is published; nil: all members may take it.
    ///
    /// - Parameters:
    ///   - known: the record that is replaced. The first content of a fleet has no roll-out, because there is none that
    ///     the other members could keep.
    ///   - time: the clock of the server.
    func rollOut(of digest: ContentDigest, replacing known: FleetRecord?, at time: WallTime) -> FleetRecord.RollOut? {
        guard let known, let first = steps.first, first < FleetRecord.RollOut.wholeFleet else { return nil }
        var rollOut = FleetRecord.RollOut(
            share: first, since: time, before: known.digest, sizeBefore: known.size, numberBefore: known.number)
        // Content whose own roll-out has not ended is not what the others have.
        if let open = known.rollOut {
            (rollOut.before, rollOut.sizeBefore, rollOut.numberBefore) =
                (open.before, open.sizeBefore, open.numberBefore)
        }
        return rollOut.before == digest ? nil : rollOut
    }

    /// The roll-out after the end of a step; nil: all members may take the content.
    ///
    /// - Parameter failures: the members that reported a failure in this step.
    func next(after rollOut: FleetRecord.RollOut, failures: Int, at time: WallTime) -> FleetRecord.RollOut? {
        var next = rollOut
        guard failures < Int(mostFailures) else {
            next.isHalted = true
            return next
        }
        guard let share = steps.first(where: { $0 > rollOut.share }), share < FleetRecord.RollOut.wholeFleet else {
            return nil
        }
        (next.share, next.since) = (share, time)
        return next
    }
}

/// An operator's order about a roll-out.
package struct FleetOrder: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable {
        case halt
        case resume
    }

    package var kind: Kind
    /// The content that is rolled out.
    package var digest: ContentDigest
    /// The sequence number of its message.
    package var sequence: UInt64

    package init(_ kind: Kind, _ digest: ContentDigest, sequence: UInt64) {
        self.kind = kind
        self.digest = digest
        self.sequence = sequence
    }

    /// The roll-out after the order. A resumed one begins its step again, so that only later failures count.
    func applied(to rollOut: FleetRecord.RollOut, at time: WallTime) -> FleetRecord.RollOut {
        var rollOut = rollOut
        rollOut.order = sequence
        rollOut.isHalted = kind == .halt
        if kind == .resume { rollOut.since = time }
        return rollOut
    }
}

/// Reviews the roll-out of one pipeline when a step has ended, or an operator has ordered something. Each machine that
/// fetches does so; the one whose record is stored first decides, because the others would replace another record than
/// they reviewed.
struct RollOutReview: Hashable, Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Nil: this member does not fetch.
    var plan: RollOutPlan?
    /// The newest order.
    var order: FleetOrder?
    /// When this member reviews the roll-out; nil: there is nothing to review.
    private(set) var due: Instant?

    /// The order, unless it is about other content or was carried out.
    private func pendingOrder(_ record: FleetRecord) -> FleetOrder? {
        guard let order, order.digest == record.digest, order.sequence != record.rollOut?.order else { return nil }
        return order
    }

    /// Plans the review of the newest record.
    ///
    /// - Parameters:
    ///   - time: the clock of the server now; nil: there is no connection.
    ///   - backoff: this member's delay: usually one member reviews before the others.
    mutating func schedule(_ record: FleetRecord?, at time: WallTime?, _ now: Instant, backoff: Duration) {
        guard let plan, let record, let rollOut = record.rollOut, let time else {
            due = nil
            return
        }
        if pendingOrder(record) != nil {
            due = now + backoff
        } else if rollOut.isHalted {
            due = nil
        } else {
            // A step that begins in the future is the work of a wrong clock: it must not last for ever.
            let left = min(plan.length, time.duration(to: rollOut.since.advanced(by: plan.length)))
            due = now + max(.zero, left) + backoff
        }
    }

    /// The review has begun. If it leads to nothing, it is repeated.
    mutating func begin(_ now: Instant, again: Duration) { due = now + again }

    /// Whether the step has ended, or begins in the future: then a wrong clock has begun it, and the wait is over.
    private func hasEnded(_ rollOut: FleetRecord.RollOut, _ plan: RollOutPlan, at time: WallTime) -> Bool {
        let elapsed = rollOut.since.duration(to: time)
        return elapsed < .zero || elapsed >= plan.length
    }

    /// The record that follows a reviewed one; nil: nothing changes.
    ///
    /// - Parameters:
    ///   - failures: the members that reported a failure since the step began; nil: unknown.
    ///   - time: the clock of the server.
    func successor(of record: FleetRecord, failures: Int?, at time: WallTime) -> FleetRecord? {
        guard let plan, let rollOut = record.rollOut, record.number < .max else { return nil }
        var next = record
        next.number += 1
        if let order = pendingOrder(record) {
            next.rollOut = order.applied(to: rollOut, at: time)
        } else if let failures, !rollOut.isHalted, hasEnded(rollOut, plan, at: time) {
            next.rollOut = plan.next(after: rollOut, failures: failures, at: time)
        } else {
            return nil
        }
        return next
    }
}

/// The place of a member in the roll-outs of a pipeline. It differs from content to content, so that not always the same
/// members are the first.
enum RollOutPlace {
    /// - Parameter share: the stable place of the member for this pipeline, from 0 to 1.
    /// - Returns: less than ``FleetRecord/RollOut/wholeFleet``.
    static func place(_ share: Double, _ digest: ContentDigest) -> UInt32 {
        // The finishing steps of SplitMix64.
        var hash = share.bitPattern ^ digest.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        hash = (hash ^ hash >> 30) &* 0xbf58_476d_1ce4_e5b9
        hash = (hash ^ hash >> 27) &* 0x94d0_49bb_1331_11eb
        hash ^= hash >> 31
        return UInt32(truncatingIfNeeded: hash % UInt64(FleetRecord.RollOut.wholeFleet))
    }
}
