import FreshetModel

/// Decides for one pipeline of one member whether a run requests the content from the origin, or takes it from the
/// fleet. A state machine: events in, actions out. It reads no clock and performs no action itself.
///
/// | phase | meaning | ends with |
/// | --- | --- | --- |
/// | `idle` | no run waits | ``FleetEvent/run(_:)`` |
/// | `connecting` | a run waits for the engine | a connection, ``FleetSettings/patience`` |
/// | `grace` | a planned check waits for the check of the last fetcher | a newer head, the end of the grace |
/// | `reading` | head and claim are read | ``FleetEvent/read(_:sequence:_:)`` |
/// | `backoff` | nobody holds the claim; this member tries soon | a claim of another, a newer head, the time |
/// | `claiming` | the claim is being stored | ``FleetEvent/claimed(_:)`` |
/// | `waiting` | another member holds the claim | a newer head, the end of the claim |
/// | `spreading` | there is new content; this member takes it at its place in the spread | the time |
/// | `fetching` | this member holds the claim, and its run requests the content | ``FleetEvent/ended(_:)`` |
/// | `publishing` | the new head is being stored | ``FleetEvent/published(_:)`` |
///
/// A run whose content was checked recently enough by any member needs no request at all. At most one member at a time
/// holds the claim, and a new head is stored only in place of the one that its fetcher read *before* it claimed. So a
/// fetcher that was suspended for longer than its claim lasted cannot replace a newer head.
package struct FleetMachine: Sendable {
    package typealias Instant = ContinuousClock.Instant
    package typealias Event = FleetEvent
    package typealias Action = FleetAction

    enum Phase: Hashable, Sendable {
        case idle
        case connecting(until: Instant)
        case grace(until: Instant)
        case reading
        case backoff(until: Instant)
        case claiming
        case waiting(until: Instant, isLate: Bool)
        case spreading(until: Instant)
        case fetching(renewal: Instant)
        /// - Parameter retry: when the head is stored again, after an answer was lost.
        case publishing(retry: Instant?, renewal: Instant)

        var isPublishing: Bool { if case .publishing = self { true } else { false } }
    }

    /// A run that waits for a decision.
    struct Waiting: Hashable, Sendable {
        var request: FleetRequest
        var since: Instant
        /// The newest head when the run began.
        var head: FleetRecord?
    }

    package private(set) var settings: FleetSettings
    package internal(set) var known: KnownHead
    var phase = Phase.idle
    var waiting: Waiting?
    /// The sequence number of the newest head; 0: there was none.
    ///
    /// Only a read sets it: a notice may be forged.
    var headSequence: UInt64 = 0
    /// When the newest head arrived.
    var headReceived: Instant?
    var claim = FleetClaim()
    /// The nonce of the claim that this member has stored, or is storing.
    var nonce = ""
    var publication = HeadPublication()
    /// Whether the last request of this member failed: others try first then.
    var hasFailed = false
    /// Whether another member was faster while this run waited.
    var isContended = false
    /// The requests for the origin that failed in a row, as far as this member knows.
    var failures: UInt32 = 0
    /// The number of the last head that a run followed or this member published.
    var settled: UInt64 = 0
    /// The last content that this member has requested alone, and when; nil: the fleet has checked since.
    var alone: (digest: ContentDigest, at: Instant)?
    /// The engine's clock at an instant; nil: there is no connection.
    var clock: (time: WallTime, at: Instant)?
    var silence: EngineSilence
    /// The newest demand of an operator: the sequence number of its message; nil: none is known.
    var demand: UInt64?
    /// The demand that this member has answered: its record may not count for itself.
    var answeredDemand: UInt64?
    var review = RollOutReview()
    /// When the signal fires.
    var fires: (at: Instant, detail: String)?
    var isWatching = false
    private var armed: Instant?
    var actions: [Action] = []
    let fraction: @Sendable () -> Double

    /// - Parameters:
    ///   - number: the highest number of a head that was seen before a restart.
    ///   - fraction: random numbers from 0 to 1.
    package init(
        _ settings: FleetSettings, seen number: UInt64 = 0, at now: Instant,
        fraction: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }
    ) {
        self.settings = settings
        known = KnownHead(seen: number)
        settled = number
        silence = EngineSilence(since: now)
        self.fraction = fraction
        configure(settings)
    }

    private mutating func configure(_ settings: FleetSettings) {
        self.settings = settings
        review.plan = settings.fetches ? settings.rollOut ?? .standard : nil
    }

    /// Handles an event, and returns the actions.
    package mutating func handle(_ event: Event, at now: Instant) -> [Action] {
        apply(event, now)
        elapse(now)
        watch()
        let deadline = [phase.deadline, fires?.at, review.due].compactMap(\.self).min()
        if deadline != armed {
            armed = deadline
            actions.append(.wake(at: deadline))
        }
        defer { actions = [] }
        return actions
    }

    private mutating func apply(_ event: Event, _ now: Instant) {
        switch event {
        case .connected(let time): connected(time, now)
        case .disconnected: disconnected(now)
        case .configured(let settings):
            configure(settings)
            scheduleReview(now)
        case .head(let record): received(record, now)
        case .claim(let claim): received(claim, now)
        case .unusable(let digest): if digest == known.record?.digest { publication.unusable = digest }
        case .read(let record, let sequence, let claim): read(record, sequence, claim, now)
        case .readFailed: readFailed(now)
        case .run(let request):
            waiting = Waiting(request: request, since: now, head: known.record)
            fires = nil
            // The result of the last run is being published: then this run is considered.
            if !phase.isPublishing { consider(now) }
        case .abandoned: abandoned()
        case .claimed(let result): claimed(result, now)
        case .ended(let end): ended(end, now)
        case .followed(let number):
            settled = max(settled, number)
            alone = nil
        case .fetchedAlone(let digest): alone = (digest, now)
        case .published(let result): published(result, now)
        case .demanded(let sequence): demanded(sequence, now)
        case .ordered(let order):
            review.order = order
            scheduleReview(now)
        case .reviewed(let record, let sequence, let failures): reviewed(record, sequence, failures, now)
        case .timer: break
        }
    }

    // MARK: Decisions

    /// Looks for the decision about a run that has just begun, or for which the connection has changed.
    mutating func consider(_ now: Instant) {
        guard let waiting else { return }
        guard clock != nil else { return considerAlone(now) }
        if satisfies(waiting, now) { return follow(now) }
        guard settings.fetches else { return considerFollower(waiting, now) }
        if !isDemanded(waiting), let head = known.record, !hasDiverged(waiting, from: head),
            let age = age(of: head, now),
            let overdue = settings.overdueAge(isLastFetcher: isOwn(head)), age < overdue
        {
            phase = .grace(until: now + (overdue - age))
        } else {
            startReading()
        }
    }

    /// Whether the newest head answers the request of a run, without another check.
    func satisfies(_ waiting: Waiting, _ now: Instant) -> Bool {
        guard let head = known.record, !settings.fetches || head.digest != publication.unusable, !isDemanded(waiting)
        else { return false }
        switch waiting.request.kind {
        case .demand, .operation: return false
        case .head where head.number > settled: return !hasDiverged(waiting, from: head)
        // The others have kept the period while this member was away.
        case .environment, .head:
            if hasDiverged(waiting, from: head) { return false }
            return isNewCheck(head, than: waiting.head)
                || age(of: head, now).map { $0 < settings.answerLifetime } ?? false
        }
    }

    /// Whether only a check that begins after the run answers it.
    func isDemanded(_ waiting: Waiting) -> Bool {
        waiting.request.kind.isDemand || settings.fetches && isDemandOpen
    }

    /// Whether the fleet checked the content of a head before this member requested its copy alone. It must not go back.
    func isOlder(_ head: FleetRecord, than copy: ContentDigest?) -> Bool {
        guard let alone, alone.digest == copy, head.digest != copy, let time = serverTime(alone.at) else {
            return false
        }
        return head.checkedAt < time
    }

    /// Whether the roll-out of a head has not reached this member, whose copy is newer than the content before it.
    func isAhead(of head: FleetRecord, _ copy: ContentDigest?) -> Bool {
        guard let rollOut = head.rollOut, copy != nil, copy != head.digest, copy != rollOut.before else { return false }
        return available(head, to: copy) != head && settled > rollOut.numberBefore
    }

    /// Whether the copy stays although it is not the content of the head.
    func keepsCopy(_ waiting: Waiting, from head: FleetRecord) -> Bool {
        let copy = waiting.request.copy
        if isOlder(head, than: copy) || isAhead(of: head, copy) { return true }
        // A member that follows and has published this head before has got other content since: alone, before a restart,
        // or from an operator.
        return !settings.fetches && copy != nil && head.number <= settled && available(head, to: copy).digest != copy
    }

    /// Whether an operator demands a check that no member has made yet.
    var isDemandOpen: Bool {
        demand != nil && demand != known.record?.answeredDemand && demand != answeredDemand
    }

    /// A step of a roll-out is its own record, and not a check.
    func isNewCheck(_ record: FleetRecord, than before: FleetRecord?) -> Bool {
        guard let before else { return true }
        return record.number > before.number
            && (record.checkedAt, record.digest) != (before.checkedAt, before.digest)
    }

    /// What a member with this copy may have of a record.
    func available(_ record: FleetRecord, to copy: ContentDigest?) -> FleetRecord {
        record.available(to: RollOutPlace.place(settings.share, record.digest), with: copy)
    }

    /// Whether the copy is other content than that of a head that was taken before: this member has fetched it alone, or
    /// could not publish it. It must not go back.
    func hasDiverged(_ waiting: Waiting, from head: FleetRecord) -> Bool {
        if settings.fetches, isOlder(head, than: waiting.request.copy) { return true }
        guard !isAhead(of: head, waiting.request.copy) else { return false }
        return settings.fetches && head.number <= settled
            && available(head, to: waiting.request.copy).digest != waiting.request.copy
    }

    /// A member that does not fetch takes what there is. It reports when that is too old.
    mutating func considerFollower(_ waiting: Waiting, _ now: Instant) {
        guard let head = known.record else {
            guard now < waiting.since + FleetSettings.patience else {
                return decide(.wait(.noFetcher(lastCheck: nil)))
            }
            phase = .connecting(until: waiting.since + FleetSettings.patience)
            return
        }
        let isOverdue =
            settings.overdueAge(isLastFetcher: false).map { overdue in
                age(of: head, now).map { $0 >= overdue } ?? true
            } ?? false
        guard isOverdue, !isDemanded(waiting), head.number <= settled else { return follow(now) }
        guard now < waiting.since + FleetSettings.patience else {
            return decide(.wait(.noFetcher(lastCheck: head.checkedAt)))
        }
        phase = .waiting(until: waiting.since + FleetSettings.patience, isLate: false)
        // Behind a leaf node, notices may have been lost although the connection lasted.
        actions.append(.read)
    }

    /// Whether there is a head that no run has followed, and that may replace the copy.
    private func hasUnsettledHead(_ waiting: Waiting) -> Bool {
        guard let head = known.record, head.number > settled else { return false }
        return !isDemanded(waiting) && !hasDiverged(waiting, from: head)
    }

    /// There is no connection: the run waits for one, requests the content for this member alone, or fails.
    mutating func considerAlone(_ now: Instant) {
        guard let waiting else { return }
        if settings.hasMirror, hasUnsettledHead(waiting) { return follow(now) }
        let slot = silence.slot(settings, members: known.record?.members ?? 1, now)
        if let slot, now >= slot || waiting.request.kind == .operation {
            silence.slotIsUsed()
            return decide(.fetchAlone)
        }
        let patience = waiting.since + FleetSettings.patience
        guard now < patience else {
            if let slot { fires = (slot, "the engine does not answer") }
            return decide(.wait(.engineAway(fetchesAt: slot)))
        }
        phase = .connecting(until: min(slot ?? patience, patience))
    }

    mutating func follow(_ now: Instant) {
        guard let waiting, let head = known.record else { return }
        if keepsCopy(waiting, from: head) { return decide(.keep) }
        let record = available(head, to: waiting.request.copy)
        let place = (headReceived ?? now) + settings.spread * settings.share
        if now < place, record.digest != waiting.request.copy, record.number > settled {
            phase = .spreading(until: place)
            return
        }
        takeHead()
    }

    mutating func takeHead() {
        guard let record = known.record else { return }
        decide(.follow(available(record, to: waiting?.request.copy)))
    }

    mutating func decide(_ decision: FleetDecision) {
        (waiting, isContended) = (nil, false)
        phase = .idle
        actions.append(.decide(decision))
    }

    func isOwn(_ record: FleetRecord) -> Bool { record.madeBy == settings.machine }

    /// The age of a check by the engine's clock. Nil: there is no connection, or the check is in the future, since the
    /// engine's clock was set back; such a check must not count as recent for as long as the clock was wrong.
    func age(of record: FleetRecord, _ now: Instant) -> Duration? {
        guard let age = serverTime(now).map({ record.checkedAt.duration(to: $0) }), age > .seconds(-60) else {
            return nil
        }
        return max(.zero, age)
    }

    func serverTime(_ now: Instant) -> WallTime? {
        clock.map { $0.time.advanced(by: $0.at.duration(to: now)) }
    }

    // MARK: Time

    mutating func elapse(_ now: Instant) {
        if let due = fires, now >= due.at {
            fires = nil
            // A run in progress takes the newest head anyway.
            if phase == .idle { actions.append(.fire(due.detail)) }
        }
        if let due = review.due, now >= due { startReview(now) }
        guard let deadline = phase.deadline, now >= deadline else { return }
        switch phase {
        case .connecting, .grace: consider(now)
        case .waiting where settings.fetches: startReading()
        case .waiting: consider(now)
        case .backoff:
            nonce = String(UInt64(max(0, min(1, fraction())) * 0x1p53), radix: 36)
            publication.expected = headSequence
            phase = .claiming
            actions.append(.claim(expected: claim.sequence, nonce: nonce))
        case .spreading: takeHead()
        case .fetching:
            phase = .fetching(renewal: now + FleetSettings.renewal)
            if clock != nil { actions.append(.renew(expected: claim.sequence, nonce: nonce)) }
        case .publishing(let retry, let renewal):
            if now >= renewal {
                phase = .publishing(retry: retry, renewal: now + FleetSettings.renewal)
                if clock != nil { actions.append(.renew(expected: claim.sequence, nonce: nonce)) }
            }
            if let retry, now >= retry { startPublishing(now) }
        case .idle, .reading, .claiming: break
        }
    }

    mutating func startReading() {
        phase = .reading
        // The claim is watched before it is read, so that no change is missed.
        watch()
        actions.append(.read)
    }

    /// The claim is watched while it matters.
    mutating func watch() {
        let needsClaim: Bool
        switch phase {
        case .reading, .backoff, .claiming: needsClaim = true
        case .waiting: needsClaim = settings.fetches
        case .idle, .connecting, .grace, .spreading, .fetching, .publishing: needsClaim = false
        }
        guard needsClaim != isWatching else { return }
        isWatching = needsClaim
        actions.append(.watchClaim(needsClaim))
    }
}

extension FleetMachine {
    /// The sequence number of the claim that this member holds; nil: it holds none.
    var heldClaim: UInt64? {
        switch phase {
        case .fetching, .publishing: claim.sequence
        case .idle, .connecting, .grace, .reading, .backoff, .claiming, .waiting, .spreading: nil
        }
    }

    /// What the run waits for, in words; nil: none waits.
    var waits: String? {
        guard waiting != nil else { return nil }
        switch phase {
        case .connecting: return "the servers of the fleet"
        case .grace: return "the check of \(known.record?.madeBy ?? "another machine")"
        case .waiting: return claim.holder.map { "the request of \($0.machine)" } ?? "a machine that fetches"
        case .spreading: return "its place in the spread"
        case .reading, .backoff, .claiming: return "the answer of the fleet"
        case .publishing: return "the publication of the last result"
        case .idle, .fetching: return nil
        }
    }
}

extension FleetMachine.Phase {
    /// When the phase ends by time alone; nil: only an event ends it.
    var deadline: ContinuousClock.Instant? {
        switch self {
        case .connecting(let until), .grace(let until), .backoff(let until), .waiting(let until, _),
            .spreading(let until), .fetching(let until):
            until
        case .publishing(let retry, let renewal): min(retry ?? renewal, renewal)
        case .idle, .reading, .claiming: nil
        }
    }
}
