import FreshetModel

/// Events of the engine, and of the run that requests the content for all.
extension FleetMachine {
    mutating func connected(_ time: WallTime, _ now: Instant) {
        clock = (time, now)
        silence.ends()
        scheduleReview(now)
        switch phase {
        case .connecting: consider(now)
        case .publishing: startPublishing(now)
        default: break
        }
    }

    mutating func disconnected(_ now: Instant) {
        guard clock != nil else { return }
        clock = nil
        silence.begins(at: now)
        scheduleReview(now)
        switch phase {
        case .idle, .connecting, .spreading, .fetching, .publishing: break
        case .grace, .reading, .backoff, .claiming, .waiting: considerAlone(now)
        }
    }

    mutating func received(_ record: FleetRecord, _ now: Instant) {
        let before = known.record
        guard see(record, isAnswer: false, now) else { return }
        let isCheck = isNewCheck(record, than: before)
        switch phase {
        case .idle:
            // A step of a roll-out matters to those that it reaches.
            guard isCheck || before.map({ available($0, to: nil).digest }) != available(record, to: nil).digest else {
                if settled == before?.number { settled = record.number }
                return
            }
            planSignal(now)
        case .grace, .reading, .backoff: followIfSatisfied(now)
        case .waiting(_, let isLate):
            // A check that began before the request does not answer it; a later one is looked for.
            if isLate { startReading() } else if isCheck { follow(now) }
        case .connecting where clock != nil || settings.hasMirror: consider(now)
        case .connecting, .claiming, .spreading, .fetching, .publishing: break
        }
    }

    mutating func followIfSatisfied(_ now: Instant) {
        guard let waiting, satisfies(waiting, now) else { return }
        follow(now)
    }

    /// Plans the signal, at this member's place in the spread, if there is a record that no run has followed.
    mutating func planSignal(_ now: Instant) {
        guard let record = known.record, record.number > settled else { return }
        fires = (now + settings.spread * settings.share, "\(record.madeBy) published number \(record.number)")
    }

    /// Takes a record; returns whether it is new.
    ///
    /// - Parameter isAnswer: whether it was read.
    mutating func see(_ record: FleetRecord, isAnswer: Bool, _ now: Instant) -> Bool {
        // A server of a cluster may answer with an older state.
        if isAnswer, record.number < known.number { return false }
        do throws(RecordRejection) {
            guard try known.saw(record) != .known else { return false }
        } catch {
            actions.append(.reject(error))
            return false
        }
        (failures, headReceived, hasFailed) = (0, now, false)
        scheduleReview(now)
        return true
    }

    mutating func received(_ claim: FleetClaim, _ now: Instant) {
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

    mutating func see(_ claim: FleetClaim) {
        self.claim = claim
        if let pause = claim.holder?.pause { failures = max(failures, pause.failures) }
    }

    mutating func wait(for holder: FleetClaim.Holder, isLate: Bool, _ now: Instant) {
        if let pause = holder.pause {
            // There may be newer content than the copy although the last check failed.
            guard known.number <= settled else { return follow(now) }
            return decide(.wait(.paused(pause, by: holder.machine)))
        }
        // One second more: the engine removes the claim a little later.
        phase = .waiting(until: now + FleetSettings.claimLifetime + .seconds(1), isLate: isLate)
    }

    mutating func read(_ record: FleetRecord?, _ sequence: UInt64, _ claim: FleetClaim, _ now: Instant) {
        let isNew = record.map { see($0, isAnswer: true, now) } ?? false
        // What is stored counts, whatever was known: the engine may have lost messages, and a record that does not count
        // has to be replaced, too.
        headSequence = sequence
        see(claim)
        if clock != nil { silence.readWasAnswered() }
        if phase.isPublishing { return verifyPublication(now) }
        if isNew, case .waiting = phase, !settings.fetches { return follow(now) }
        guard phase == .reading, let waiting else { return }
        if satisfies(waiting, now) { return follow(now) }
        if let holder = self.claim.holder, !self.claim.isOver(at: serverTime(now)) {
            // The answer to a claim was lost, and it is stored.
            if !nonce.isEmpty, holder.nonce == nonce, holder.pause == nil { return beginFetch(now) }
            return wait(for: holder, isLate: isDemanded(waiting), now)
        }
        let isLast = known.record.map(isOwn) ?? false
        let backoff = ClaimBackoff.duration(
            longest: FleetSettings.longestClaimBackoff, members: known.record?.members ?? 1_000, fraction: fraction())
        // The last fetcher tries first, unless it failed or another one was faster.
        let isFirst = isLast && !hasFailed && !isContended
        phase = .backoff(until: isFirst ? now : now + (hasFailed ? FleetSettings.longestClaimBackoff : .zero) + backoff)
    }

    mutating func readFailed(_ now: Instant) {
        switch phase {
        case .reading:
            silence.begins(at: now)
            considerAlone(now)
        case .publishing(_, let renewal):
            phase = .publishing(retry: now + FleetSettings.longestClaimBackoff, renewal: renewal)
        default: break
        }
    }

    mutating func claimed(_ result: FleetWriteResult, _ now: Instant) {
        switch (phase, result) {
        case (.claiming, .stored(let sequence)):
            silence.ends()
            claim = FleetClaim(
                sequence: max(sequence, claim.sequence),
                holder: FleetClaim.Holder(machine: settings.machine, nonce: nonce))
            beginFetch(now)
        case (.claiming, .conflict):
            silence.ends()
            isContended = true
            startReading()
        case (.claiming, .unknown):
            if silence.claimWasNotAnswered(at: now) { considerAlone(now) } else { startReading() }
        // A renewal, also if its answer comes after the end of the run.
        case (.fetching, .stored(let sequence)), (.publishing, .stored(let sequence)): claim.sequence = sequence
        // The next renewal, or the publication, finds out.
        default: break
        }
    }

    mutating func beginFetch(_ now: Instant) {
        (waiting, isContended) = (nil, false)
        publication.demand = demand
        phase = .fetching(renewal: now + FleetSettings.renewal)
        actions.append(.decide(.fetch))
    }

    // MARK: The run

    mutating func abandoned() {
        waiting = nil
        switch phase {
        case .fetching, .publishing: break
        // If the claim is stored, it ends by itself.
        default: phase = .idle
        }
    }

    mutating func ended(_ end: FleetRunEnd, _ now: Instant) {
        guard case .fetching = phase else { return }
        switch end {
        case .succeeded(let digest, let size, let validators):
            publication.begin(digest, size: size, validators, checked: now)
            hasFailed = false
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
        case .cancelled, .rejected:
            hasFailed = end == .rejected
            if clock != nil { actions.append(.release(expected: claim.sequence)) }
            finishFetch(now)
        }
    }

    /// Stores the head. Without a connection, that waits for one.
    mutating func startPublishing(_ now: Instant) {
        phase = .publishing(retry: nil, renewal: now + FleetSettings.renewal)
        guard let clock else { return }
        let draft = publication.next(after: known, settings.rollOut) {
            clock.time.advanced(by: clock.at.duration(to: $0))
        }
        guard let draft else { return finishFetch(now) }
        actions.append(.publish(draft, expected: publication.expected))
    }

    mutating func published(_ result: FleetWriteResult, _ now: Instant) {
        guard phase.isPublishing, clock != nil else { return }
        switch result {
        case .stored(let sequence):
            headSequence = sequence
            settled = max(settled, publication.stored())
            (alone, answeredDemand) = (nil, publication.demand)
            failures = 0
            silence.ends()
            actions.append(.release(expected: claim.sequence))
            finishFetch(now)
            if let demand { demanded(demand, now) }
        // Another fetcher whose claim had ended may have been faster, or the answer was lost.
        case .conflict, .unknown: actions.append(.read)
        }
    }

    /// Publishing had another result than it should have: head and claim say what happened.
    mutating func verifyPublication(_ now: Instant) {
        if let record = known.record, isOwn(record), publication.isAttempt(record) {
            return published(.stored(sequence: headSequence), now)
        }
        guard claim.holder?.nonce == nonce else { return finishFetch(now) }
        publication.expected = headSequence
        // Not immediately: whatever stands in the way may stay.
        phase = .publishing(
            retry: now + FleetSettings.longestClaimBackoff * fraction(), renewal: now + FleetSettings.renewal)
    }

    mutating func finishFetch(_ now: Instant) {
        publication.end()
        nonce = ""
        phase = .idle
        if waiting == nil { planSignal(now) } else { consider(now) }
    }

    // MARK: Operators

    /// An operator demands a check: the members that fetch contend for it.
    mutating func demanded(_ sequence: UInt64, _ now: Instant) {
        demand = sequence
        guard settings.fetches, isDemandOpen else { return }
        switch phase {
        case .idle: fires = (now, "an operator of the fleet demands a check")
        case .grace: consider(now)
        // A run that waits for a decision takes it into account.
        case .connecting, .reading, .backoff, .claiming, .waiting, .spreading, .fetching, .publishing: break
        }
    }

    mutating func scheduleReview(_ now: Instant) {
        let backoff = ClaimBackoff.duration(
            longest: FleetSettings.longestClaimBackoff, members: known.record?.members ?? 1_000, fraction: fraction())
        review.schedule(known.record, at: serverTime(now), now, backoff: backoff)
    }

    mutating func startReview(_ now: Instant) {
        review.begin(now, again: FleetSettings.patience)
        guard let record = known.record, let rollOut = record.rollOut else { return }
        actions.append(.review(record.digest, since: rollOut.since))
    }

    mutating func reviewed(_ record: FleetRecord?, _ sequence: UInt64, _ failures: Int?, _ now: Instant) {
        guard let record, let time = serverTime(now) else { return }
        // Its notice was lost. The failures are those of the previous step.
        if see(record, isAnswer: true, now) || record != known.record { return }
        guard let next = review.successor(of: record, failures: failures, at: time) else { return }
        actions.append(.rewrite(next, expected: sequence))
    }
}
