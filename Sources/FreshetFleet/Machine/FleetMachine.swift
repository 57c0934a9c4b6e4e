package import FreshetModel

/// Decides for one pipeline of one member whether a run requests the content from the origin, or takes it from the
/// fleet. A state machine: events in, actions out. It reads no clock and performs no action itself.
///
/// | phase | meaning | ends with |
/// | --- | --- | --- |
/// | `idle` | no run waits | ``Event/run(_:)`` |
/// | `connecting` | a run waits for the engine | a connection, ``FleetSettings/patience`` |
/// | `grace` | a planned check waits for the check of the last fetcher | a newer head, the end of the grace |
/// | `reading` | head and claim are read | ``Event/read(_:_:)`` |
/// | `backoff` | nobody holds the claim; this member tries soon | a claim of another, a newer head, the time |
/// | `claiming` | the claim is being stored | ``Event/claimed(_:)`` |
/// | `waiting` | another member holds the claim | a newer head, the end of the claim |
/// | `spreading` | there is new content; this member takes it at its place in the spread | the time |
/// | `fetching` | this member holds the claim, and its run requests the content | ``Event/ended(_:)`` |
/// | `publishing` | the new head is being stored | ``Event/published(_:)`` |
///
/// A run whose content was checked recently enough by any member needs no request at all. At most one member at a time
/// holds the claim, and a new head is stored only in place of the one that its fetcher read *before* it claimed. So a
/// fetcher that was suspended for longer than its claim lasted cannot replace a newer head.
package struct FleetMachine: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// After so many claims without an answer, the engine counts as silent.
    static let mostUnansweredClaims = 2
    /// After so many attempts to store a head, the result of the run stays with this member.
    static let mostPublications = 10

    package enum Event: Sendable {
        /// There is a connection to the engine; `serverTime` is the time of its clock now.
        case connected(serverTime: WallTime)
        case disconnected
        /// A verified head arrived.
        case head(FleetHead)
        /// A change of the claim arrived, while claims are watched.
        case claim(FleetClaim)
        /// The answer to ``Action/read``; head nil: there is none, or its record does not count.
        ///
        /// `sequence` is the number of the stored head, whatever its record is; 0: there is none.
        case read(FleetHead?, sequence: UInt64, FleetClaim)
        /// ``Action/read`` failed.
        case readFailed
        /// A run begins. ``Action/decide(_:)`` answers.
        case run(FleetRequest)
        /// The stored content of a head is damaged or incomplete.
        case unusable(ContentDigest)
        /// The run that waits for a decision was cancelled.
        case abandoned
        /// The answer to ``Action/claim(expected:nonce:)`` or ``Action/renew(expected:nonce:)``.
        case claimed(FleetWriteResult)
        /// The run that requested the content for all has ended.
        case ended(FleetRunEnd)
        /// The answer to ``Action/publish(_:expected:)``.
        case published(FleetWriteResult)
        case timer
    }

    package enum Action: Hashable, Sendable {
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
        case decide(FleetDecision)
        /// Fire the signal `fleet` of the pipeline.
        case fire(String)
        /// A verified record does not count.
        case reject(RecordRejection)
        /// The next instant of ``Event/timer``, which replaces the previous one; nil: never.
        case wake(at: Instant?)
    }

    /// What the member knows of a head that it publishes; fleet, pipeline and fingerprint are the executor's.
    package struct FleetHeadDraft: Hashable, Sendable {
        package var number: UInt64
        package var digest: ContentDigest
        package var size: UInt64
        package var validators: Validators
        package var checkedAt: WallTime
        /// The content before that of the previous head: once this head is stored, no member takes it any more. Nil: none
        /// is known.
        package var obsolete: ContentDigest?
        /// Whether the content has to be stored although the engine seems to have it.
        package var rewrites: Bool
    }

    struct Draft: Hashable, Sendable {
        var digest: ContentDigest
        var size: UInt64
        var validators: Validators
        /// When the check succeeded.
        var checked: Instant
    }

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
        case publishing(retry: Instant?)

        var isPublishing: Bool { if case .publishing = self { true } else { false } }
    }

    /// A run that waits for a decision.
    struct Waiting: Hashable, Sendable {
        var request: FleetRequest
        var since: Instant
        /// The number of the newest head when the run began.
        var number: UInt64
    }

    package internal(set) var settings: FleetSettings
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
    /// The sequence number of the head before this member claimed.
    var claimedAfter: UInt64 = 0
    /// The content of the last head with other content than the newest one.
    var obsolete: ContentDigest?
    /// The result of the run, which is to be published.
    var draft: Draft?
    /// The number of the head that is being stored.
    var published: UInt64 = 0
    /// How often the head was stored without success.
    var publications = 0
    /// The content whose stored form is damaged.
    var unusable: ContentDigest?
    /// Whether the last request of this member failed: others try first then.
    var hasFailed = false
    /// Whether another member was faster while this run waited.
    var isContended = false
    /// The requests for the origin that failed in a row, as far as this member knows.
    var failures: UInt32 = 0
    /// The number of the last head that a run followed or this member published.
    var settled: UInt64 = 0
    /// The engine's clock at an instant; nil: there is no connection.
    var clock: (time: WallTime, at: Instant)?
    /// Since when the engine does not answer; nil: it does.
    var silentSince: Instant?
    /// The claims in a row that the engine did not answer.
    var unansweredClaims = 0
    /// When this member may request the content alone.
    var slotAlone: Instant?
    /// When the signal fires.
    var fires: (at: Instant, detail: String)?
    var isWatching = false
    private var armed: Instant?
    private var actions: [Action] = []
    private let fraction: @Sendable () -> Double

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
        silentSince = now
        self.fraction = fraction
    }

    /// Handles an event, and returns the actions.
    package mutating func handle(_ event: Event, at now: Instant) -> [Action] {
        apply(event, now)
        elapse(now)
        watch()
        let deadline = [phase.deadline, fires?.at].compactMap(\.self).min()
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
        case .head(let head): received(head, now)
        case .claim(let claim): received(claim, now)
        case .unusable(let digest): unusable = digest
        case .read(let head, let sequence, let claim): read(head, sequence, claim, now)
        case .readFailed: readFailed(now)
        case .run(let request):
            waiting = Waiting(request: request, since: now, number: known.number)
            fires = nil
            // The result of the last run is being published: then this run is considered.
            if !phase.isPublishing { consider(now) }
        case .abandoned: abandoned()
        case .claimed(let result): claimed(result, now)
        case .ended(let end): ended(end, now)
        case .published(let result): published(result, now)
        case .timer: break
        }
    }

    // MARK: Decisions

    /// Looks for the decision about a run that has just begun, or for which the connection has changed.
    private mutating func consider(_ now: Instant) {
        guard let waiting else { return }
        guard clock != nil else { return considerAlone(now) }
        if satisfies(waiting, now) { return follow(now) }
        guard settings.fetches else { return considerFollower(waiting, now) }
        if !waiting.request.kind.isDemand, let head = known.record, !hasDiverged(waiting, from: head),
            let age = age(of: head, now),
            let overdue = settings.overdueAge(isLastFetcher: isOwn(head)), age < overdue
        {
            phase = .grace(until: now + (overdue - age))
        } else {
            startReading()
        }
    }

    /// Whether the newest head answers the request of a run, without another check.
    private func satisfies(_ waiting: Waiting, _ now: Instant) -> Bool {
        guard let head = known.record, !settings.fetches || head.digest != unusable else { return false }
        switch waiting.request.kind {
        case .demand, .operation: return false
        case .head where head.number > settled: return true
        // The others have kept the period while this member was away.
        case .environment, .head:
            if hasDiverged(waiting, from: head) { return false }
            return head.number > waiting.number || age(of: head, now).map { $0 < settings.answerLifetime } ?? false
        }
    }

    /// Whether the copy is other content than that of a head that was taken before: this member has fetched it alone, or
    /// could not publish it. It must not go back.
    private func hasDiverged(_ waiting: Waiting, from head: FleetRecord) -> Bool {
        settings.fetches && head.number <= settled && head.digest != waiting.request.copy
    }

    /// A member that does not fetch takes what there is. It reports when that is too old.
    private mutating func considerFollower(_ waiting: Waiting, _ now: Instant) {
        guard let head = known.record else {
            guard now < waiting.since + FleetSettings.patience else {
                return decide(.wait(.noFetcher(lastCheck: nil)))
            }
            phase = .connecting(until: waiting.since + FleetSettings.patience)
            return
        }
        let isOverdue = settings.overdueAge(isLastFetcher: false).map { age(of: head, now) ?? .zero >= $0 } ?? false
        guard isOverdue, !waiting.request.kind.isDemand, head.number <= settled else { return follow(now) }
        guard now < waiting.since + FleetSettings.patience else {
            return decide(.wait(.noFetcher(lastCheck: head.checkedAt)))
        }
        phase = .waiting(until: waiting.since + FleetSettings.patience, isLate: false)
    }

    /// There is no connection: the run waits for one, requests the content for this member alone, or fails.
    private mutating func considerAlone(_ now: Instant) {
        guard let waiting else { return }
        let slot = aloneSlot(now)
        if let slot, now >= slot || waiting.request.kind == .operation {
            slotAlone = nil
            return decide(.fetchAlone)
        }
        let patience = waiting.since + FleetSettings.patience
        guard now < patience else {
            if let slot { fires = (slot, "the engine does not answer") }
            return decide(.wait(.engineAway(fetchesAt: slot)))
        }
        phase = .connecting(until: min(slot ?? patience, patience))
    }

    /// When this member may request the content alone; nil: never. Each member has its own place in the period, also if
    /// all of them have to check at the same time.
    private mutating func aloneSlot(_ now: Instant) -> Instant? {
        guard let fallback = settings.fallback else { return nil }
        if let slot = slotAlone, now < slot + FleetSettings.patience { return slot }
        let members = Double(known.record?.members ?? 1)
        let period = max(
            settings.checkPeriod ?? settings.answerLifetime, .seconds(1) * (members / max(0.001, fallback.rate)))
        let first = (silentSince ?? now) + fallback.after + period * settings.share
        let periods = max(0, ((now - first) / period).rounded(.up))
        let slot = first + period * periods
        slotAlone = slot
        return slot
    }

    private mutating func follow(_ now: Instant) {
        guard let waiting, let record = known.record else { return }
        let place = (headReceived ?? now) + settings.spread * settings.share
        if now < place, record.digest != waiting.request.copy, record.number > settled {
            phase = .spreading(until: place)
            return
        }
        takeHead()
    }

    private mutating func takeHead() {
        guard let record = known.record else { return }
        settled = record.number
        decide(.follow(FleetHead(record, sequence: headSequence)))
    }

    private mutating func decide(_ decision: FleetDecision) {
        (waiting, isContended) = (nil, false)
        phase = .idle
        actions.append(.decide(decision))
    }

    private func isOwn(_ record: FleetRecord) -> Bool { record.madeBy == settings.machine }

    /// The age of a check by the engine's clock. Nil: there is no connection, or the check is in the future, since the
    /// engine's clock was set back; such a check must not count as recent for as long as the clock was wrong.
    private func age(of record: FleetRecord, _ now: Instant) -> Duration? {
        guard let age = serverTime(now).map({ record.checkedAt.duration(to: $0) }), age > .seconds(-60) else {
            return nil
        }
        return max(.zero, age)
    }

    private func serverTime(_ now: Instant) -> WallTime? {
        clock.map { $0.time.advanced(by: $0.at.duration(to: now)) }
    }

    // MARK: Time

    private mutating func elapse(_ now: Instant) {
        if let due = fires, now >= due.at {
            fires = nil
            // A run in progress takes the newest head anyway.
            if phase == .idle { actions.append(.fire(due.detail)) }
        }
        guard let deadline = phase.deadline, now >= deadline else { return }
        switch phase {
        case .connecting, .grace: consider(now)
        case .waiting where settings.fetches: startReading()
        case .waiting: consider(now)
        case .backoff:
            nonce = String(UInt64(max(0, min(1, fraction())) * 0x1p53), radix: 36)
            claimedAfter = headSequence
            phase = .claiming
            actions.append(.claim(expected: claim.sequence, nonce: nonce))
        case .spreading: takeHead()
        case .fetching:
            phase = .fetching(renewal: now + FleetSettings.renewal)
            if clock != nil { actions.append(.renew(expected: claim.sequence, nonce: nonce)) }
        case .publishing: startPublishing(now)
        case .idle, .reading, .claiming: break
        }
    }

    private mutating func startReading() {
        phase = .reading
        // The claim is watched before it is read, so that no change is missed.
        watch()
        actions.append(.read)
    }

    /// The claim is watched while it matters.
    private mutating func watch() {
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

    // MARK: The engine

    private mutating func connected(_ time: WallTime, _ now: Instant) {
        clock = (time, now)
        engineAnswers()
        switch phase {
        case .connecting: consider(now)
        case .publishing: startPublishing(now)
        default: break
        }
    }

    private mutating func disconnected(_ now: Instant) {
        guard clock != nil else { return }
        clock = nil
        silentSince = silentSince ?? now
        switch phase {
        case .idle, .connecting, .spreading, .fetching, .publishing: break
        case .grace, .reading, .backoff, .claiming, .waiting: considerAlone(now)
        }
    }

    private mutating func engineAnswers() { (silentSince, unansweredClaims, slotAlone) = (nil, 0, nil) }

    private mutating func received(_ head: FleetHead, _ now: Instant) {
        guard see(head, isAnswer: false, now) else { return }
        switch phase {
        case .idle where head.record.number <= settled: break
        case .idle:
            let detail = "\(head.record.madeBy) published number \(head.record.number)"
            fires = (now + settings.spread * settings.share, detail)
        case .grace, .reading, .backoff: followIfSatisfied(now)
        case .waiting(_, let isLate):
            // A check that began before the request does not answer it; a later one is looked for.
            if isLate { startReading() } else { follow(now) }
        case .connecting where clock != nil: consider(now)
        case .connecting, .claiming, .spreading, .fetching, .publishing: break
        }
    }

    private mutating func followIfSatisfied(_ now: Instant) {
        guard let waiting, satisfies(waiting, now) else { return }
        follow(now)
    }

    /// Takes the record of a head; returns whether it is new.
    ///
    /// - Parameter isAnswer: whether it was read.
    private mutating func see(_ head: FleetHead, isAnswer: Bool, _ now: Instant) -> Bool {
        // A server of a cluster may answer with an older state.
        if isAnswer, head.record.number < known.number { return false }
        let before = known.record?.digest
        do throws(RecordRejection) {
            let change = try known.saw(head.record)
            if let before, before != head.record.digest { obsolete = before }
            guard change != .known else { return false }
            (failures, headReceived, hasFailed) = (0, now, false)
            return true
        } catch {
            actions.append(.reject(error))
            return false
        }
    }

    private mutating func received(_ claim: FleetClaim, _ now: Instant) {
        guard claim.sequence > self.claim.sequence else { return }
        see(claim)
        switch phase {
        case .backoff:
            guard let holder = claim.holder, holder.nonce != nonce else { return }
            // A notice may be forged: whether there is a pause is read.
            if holder.pause == nil { wait(for: holder, isLate: false, now) } else { startReading() }
        case .waiting(_, let isLate):
            guard let holder = claim.holder, holder.pause == nil else { return startReading() }
            wait(for: holder, isLate: isLate, now)
        default: break
        }
    }

    private mutating func see(_ claim: FleetClaim) {
        self.claim = claim
        if let pause = claim.holder?.pause { failures = max(failures, pause.failures) }
    }

    private mutating func wait(for holder: FleetClaim.Holder, isLate: Bool, _ now: Instant) {
        if let pause = holder.pause {
            // There may be newer content than the copy although the last check failed.
            guard known.number <= settled else { return follow(now) }
            return decide(.wait(.paused(pause, by: holder.machine)))
        }
        // One second more: the engine removes the claim a little later.
        phase = .waiting(until: now + FleetSettings.claimLifetime + .seconds(1), isLate: isLate)
    }

    private mutating func read(_ head: FleetHead?, _ sequence: UInt64, _ claim: FleetClaim, _ now: Instant) {
        if let head { _ = see(head, isAnswer: true, now) }
        // What is stored counts, whatever was known: the engine may have lost messages, and a record that does not count
        // has to be replaced, too.
        headSequence = sequence
        see(claim)
        if unansweredClaims == 0, clock != nil { silentSince = nil }
        if phase.isPublishing { return verifyPublication(now) }
        guard phase == .reading, let waiting else { return }
        if satisfies(waiting, now) { return follow(now) }
        if let holder = self.claim.holder, !self.claim.isOver(at: serverTime(now)) {
            // The answer to a claim was lost, and it is stored.
            if !nonce.isEmpty, holder.nonce == nonce, holder.pause == nil { return beginFetch(now) }
            return wait(for: holder, isLate: waiting.request.kind.isDemand, now)
        }
        let isLast = known.record.map(isOwn) ?? false
        let backoff = ClaimBackoff.duration(
            longest: FleetSettings.longestClaimBackoff, members: known.record?.members ?? 1_000, fraction: fraction())
        // The last fetcher tries first, unless it failed or another one was faster.
        let isFirst = isLast && !hasFailed && !isContended
        phase = .backoff(until: isFirst ? now : now + (hasFailed ? FleetSettings.longestClaimBackoff : .zero) + backoff)
    }

    private mutating func readFailed(_ now: Instant) {
        switch phase {
        case .reading:
            silentSince = silentSince ?? now
            considerAlone(now)
        case .publishing: phase = .publishing(retry: now + FleetSettings.longestClaimBackoff)
        default: break
        }
    }

    private mutating func claimed(_ result: FleetWriteResult, _ now: Instant) {
        switch (phase, result) {
        case (.claiming, .stored(let sequence)):
            engineAnswers()
            claim = FleetClaim(
                sequence: max(sequence, claim.sequence),
                holder: FleetClaim.Holder(machine: settings.machine, nonce: nonce))
            beginFetch(now)
        case (.claiming, .conflict):
            engineAnswers()
            isContended = true
            startReading()
        case (.claiming, .unknown):
            // An engine whose disk is full answers reads and no writes.
            silentSince = silentSince ?? now
            unansweredClaims += 1
            if unansweredClaims < Self.mostUnansweredClaims { startReading() } else { considerAlone(now) }
        case (.fetching, .stored(let sequence)): claim.sequence = sequence
        // The next renewal, or the publication, finds out.
        default: break
        }
    }

    private mutating func beginFetch(_ now: Instant) {
        (waiting, isContended) = (nil, false)
        phase = .fetching(renewal: now + FleetSettings.renewal)
        actions.append(.decide(.fetch))
    }

    // MARK: The run

    private mutating func abandoned() {
        waiting = nil
        switch phase {
        case .fetching, .publishing: break
        // If the claim is stored, it ends by itself.
        default: phase = .idle
        }
    }

    private mutating func ended(_ end: FleetRunEnd, _ now: Instant) {
        guard case .fetching = phase else { return }
        switch end {
        case .succeeded(let digest, let size, let validators):
            draft = Draft(digest: digest, size: size, validators: validators, checked: now)
            (phase, publications, hasFailed) = (.publishing(retry: nil), 0, false)
            startPublishing(now)
        case .failed(let reason, let retryAfter):
            if clock != nil {
                actions.append(
                    .pause(
                        expected: claim.sequence, nonce: nonce,
                        FleetPause(after: failures, retryAfter: retryAfter, reason: reason)))
            }
            failures = failures == .max ? failures : failures + 1
            hasFailed = true
            finishFetch(now)
        case .cancelled:
            if clock != nil { actions.append(.release(expected: claim.sequence)) }
            finishFetch(now)
        }
    }

    private mutating func startPublishing(_ now: Instant) {
        // It is stored when there is a connection again, if the claim is still valid then.
        phase = .publishing(retry: nil)
        guard let draft, let checkedAt = serverTime(draft.checked) else { return }
        publications += 1
        guard publications <= Self.mostPublications else { return finishFetch(now) }
        let (number, isLast) = known.number.addingReportingOverflow(1)
        // Nothing can follow the last number: 2^64 checks were never made, so a publisher has skipped numbers.
        guard !isLast else { return finishFetch(now) }
        published = number
        actions.append(
            .publish(
                FleetHeadDraft(
                    number: number, digest: draft.digest, size: draft.size, validators: draft.validators,
                    checkedAt: checkedAt,
                    obsolete: obsolete == draft.digest || known.record?.digest == draft.digest ? nil : obsolete,
                    rewrites: draft.digest == unusable),
                expected: claimedAfter))
    }

    private mutating func published(_ result: FleetWriteResult, _ now: Instant) {
        guard phase.isPublishing, clock != nil else { return }
        switch result {
        case .stored(let sequence):
            headSequence = sequence
            if draft?.digest == unusable { unusable = nil }
            settled = max(settled, published)
            failures = 0
            engineAnswers()
            actions.append(.release(expected: claim.sequence))
            finishFetch(now)
        // Another fetcher whose claim had ended may have been faster, or the answer was lost.
        case .conflict, .unknown: actions.append(.read)
        }
    }

    /// Publishing had another result than it should have: head and claim say what happened.
    private mutating func verifyPublication(_ now: Instant) {
        guard let draft else { return finishFetch(now) }
        if let record = known.record, isOwn(record), record.number == published, record.digest == draft.digest {
            return published(.stored(sequence: headSequence), now)
        }
        guard claim.holder?.nonce == nonce else { return finishFetch(now) }
        claimedAfter = headSequence
        // Not immediately: whatever stands in the way may stay.
        phase = .publishing(retry: now + FleetSettings.longestClaimBackoff * fraction())
    }

    private mutating func finishFetch(_ now: Instant) {
        (draft, nonce) = (nil, "")
        phase = .idle
        guard waiting == nil else { return consider(now) }
        guard let record = known.record, record.number > settled else { return }
        fires = (now + settings.spread * settings.share, "\(record.madeBy) published number \(record.number)")
    }
}

extension FleetMachine.Phase {
    /// When the phase ends by time alone; nil: only an event ends it.
    var deadline: ContinuousClock.Instant? {
        switch self {
        case .connecting(let until), .grace(let until), .backoff(let until), .waiting(let until, _),
            .spreading(let until), .fetching(let until):
            until
        case .publishing(let retry): retry
        case .idle, .reading, .claiming: nil
        }
    }
}
