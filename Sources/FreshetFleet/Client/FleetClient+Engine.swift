import FreshetEventLoop
package import FreshetModel
import FreshetNATS

/// The executor of the machines.
extension FleetClient {
    func add(_ job: @escaping FleetJobs.Job) { queue.add(job) }

    func jobEnded() { queue.ended() }

    func handle(_ event: FleetMachine.Event, _ member: FleetMember) {
        let settled = member.machine.settled
        for action in member.machine.handle(event, at: .now) { perform(action, member) }
        if member.machine.settled != settled {
            report(.settled(member.subject, number: member.machine.settled))
        }
        // It may be the whole content.
        if !member.machine.phase.isPublishing { member.content = nil }
    }

    /// An operation has ended, after which the pipeline may not be shared any more.
    private func handle(_ event: FleetMachine.Event, _ key: FleetKey) {
        if let member = members[key] { handle(event, member) }
    }

    private func perform(_ action: FleetMachine.Action, _ member: FleetMember) {
        let (key, subject, store) = (member.key, member.subject, store)
        func holder(_ nonce: String, _ pause: FleetPause? = nil) -> [UInt8] {
            FleetClaim.Holder(machine: identity.machine, nonce: nonce, pause: pause).text
        }
        switch action {
        case .watchClaim(true): watchClaim(member)
        case .watchClaim(false):
            member.claims?.cancel()
            member.claims = nil
        case .read: add { await self.read(key, subject) }
        case .claim(let expected, let nonce), .renew(let expected, let nonce):
            let text = holder(nonce)
            add {
                let result = await self.attempt(subject) { () throws(FleetStoreError) in
                    try await store.replace(
                        .claim, key.description, text, replacing: expected, lifetime: FleetSettings.claimLifetime)
                }
                await self.handle(.claimed(result ?? .unknown), key)
            }
        case .pause(let expected, let nonce, let pause):
            let text = holder(nonce, pause)
            add {
                _ = await self.attempt(subject) { () throws(FleetStoreError) in
                    try await store.replace(
                        .claim, key.description, text, replacing: expected, lifetime: pause.duration)
                }
            }
        case .release(let expected):
            add {
                // If that fails, the claim ends by itself.
                try? await store.remove(.claim, key.description, replacing: expected)
            }
        case .publish(let draft, let expected):
            let content = member.content
            add { await self.publish(draft, subject, replacing: expected, content) }
        case .review(let digest, let since): add { await self.review(key, subject, digest, since: since) }
        case .rewrite(let record, let expected): add { await self.rewrite(record, subject, replacing: expected) }
        case .decide(let decision): member.decide(decision)
        case .fire(let detail): member.fire(detail)
        case .reject(let rejection): report(.rejected(pipeline: subject.pipeline, rejection))
        case .wake(let instant):
            guard let instant else {
                member.timer?.disarm()
                return
            }
            let timer =
                member.timer
                ?? LoopTimer(loop, named: "fleet") { [weak self] in
                    self?.assumeIsolated { client in
                        if let member = client.members[key] { client.handle(.timer, member) }
                    }
                }
            member.timer = timer
            timer.arm(at: instant)
        }
    }

    /// Reports an error; nil: the operation failed.
    private func attempt<Value: Sendable>(
        _ subject: FleetSubject, _ body: @Sendable () async throws(FleetStoreError) -> Value
    ) async -> Value? {
        do throws(FleetStoreError) {
            return try await body()
        } catch {
            if clock != nil { report(.failed(pipeline: subject.pipeline, error)) }
            return nil
        }
    }

    private func read(_ key: FleetKey, _ subject: FleetSubject) async {
        let store = store
        let result = await attempt(subject) { () throws(FleetStoreError) in
            let head = try await store.last(.head, key.description)
            return (head, try await store.last(.claim, key.description))
        }
        guard let (head, claim) = result else { return handle(.readFailed, key) }
        handle(
            .read(
                head.flatMap { verified($0, subject) }, sequence: head?.sequence ?? 0,
                claim.map { FleetClaim($0) } ?? FleetClaim()), key)
    }

    /// Stores the content, then its record.
    private func publish(
        _ draft: FleetHeadDraft, _ subject: FleetSubject, replacing expected: UInt64,
        _ content: ContentReader?
    ) async {
        let key = FleetKey(subject)
        let (store, bodies, buckets, identity) = (store, bodies, buckets, identity)
        let result = await attempt(subject) { () throws(FleetStoreError) -> FleetWriteResult in
            guard let content, let seed = identity.seed else { return .conflict }
            try await bodies.put(key, draft.digest, size: draft.size, rewrites: draft.rewrites, read: content)
            var record = FleetRecord(
                fleet: subject.fleet, pipeline: subject.pipeline, fingerprint: subject.fingerprint,
                number: draft.number, digest: draft.digest, size: draft.size, checkedAt: draft.checkedAt,
                madeBy: identity.machine)
            record.validators = draft.validators
            let members = try await buckets.state(.status).messages
            record.members = UInt32(clamping: max(1, members))
            (record.answeredDemand, record.rollOut) = (draft.answeredDemand, draft.rollOut)
            guard let signed = SignedRecord(record, signedBy: seed) else { return .conflict }
            return try await store.replace(.head, key.description, signed, replacing: expected)
        }
        handle(.published(result ?? .unknown), key)
        guard case .stored? = result, draft.digest != draft.previous else { return }
        _ = await attempt(subject) { () throws(FleetStoreError) in
            try await bodies.removeOthers(
                key, than: Set([draft.digest, draft.previous, draft.rollOut?.before].compactMap(\.self)))
        }
    }

    // MARK: Roll-outs

    /// Reads the head, and counts the failures that members have reported.
    private func review(_ key: FleetKey, _ subject: FleetSubject, _ digest: ContentDigest, since: WallTime) async {
        let store = store
        let result = await attempt(subject) { () throws(FleetStoreError) in
            // Without the reports, an order of an operator is still carried out, and a step does not begin.
            let failures = (try? await store.list(.report, "\(key).*", since: since, limit: Self.mostReports))
                .map {
                    $0.count { FleetReport(text: $0.message.payload)?.failure?.digest == digest && $0.time >= since }
                }
            return (try await store.last(.head, key.description), failures)
        }
        guard let (head, failures) = result, let head else { return }
        handle(.reviewed(verified(head, subject), sequence: head.sequence, failures: failures), key)
    }

    /// The most reports that are read.
    private static let mostReports = 100_000

    private func rewrite(_ record: FleetRecord, _ subject: FleetSubject, replacing expected: UInt64) async {
        guard let seed = identity.seed, let signed = SignedRecord(record, signedBy: seed) else { return }
        let store = store
        // Another member may have been faster. The machine sees the result as every member does.
        let result = await attempt(subject) { () throws(FleetStoreError) in
            try await store.replace(.head, FleetKey(subject).description, signed, replacing: expected)
        }
        if case .stored? = result { report(.rolledOut(record)) }
    }

    /// Stores the reports of this member when they are due. Without a connection they wait.
    func armReports() {
        guard clock != nil else { return }
        let timer =
            reportTimer
            ?? LoopTimer(loop, named: "fleet") { [weak self] in self?.assumeIsolated { $0.storeReports() } }
        reportTimer = timer
        timer.arm(at: reports.next)
    }

    private func storeReports() {
        let due = reports.take(.now)
        for (key, report) in due.reports { add { await self.store(report, key) } }
        if due.renews { add { try? await self.putStatus() } }
        armReports()
    }

    private func store(_ report: FleetReport, _ key: FleetKey) async {
        // A fleet that was set up by an earlier version has no such bucket.
        let sequence = try? await store.put(
            .report, "\(key).\(identity.machine)", report.text, lifetime: ReportSchedule.lifetime)
        reports.sent(key, report, isStored: sequence != nil, at: .now)
        armReports()
    }

    /// Receives what operators want from the members that fetch.
    func followWants() async {
        guard identity.seed != nil, let prefix = FleetBucket.want.republished,
            let subscription = try? await client.subscribe(NATSSubjectPattern("\(prefix)>"))
        else { return }
        while let delivery = try? await subscription.next() {
            guard case .message(let message) = delivery, let stored = try? FleetStore.stored(message) else { continue }
            receivedWant(stored)
        }
    }

    func receivedWant(_ stored: FleetStore.Stored) {
        guard stored.subject.hasPrefix(FleetBucket.want.prefix), let want = FleetWant(text: stored.message.payload)
        else { return }
        let name = stored.subject.dropFirst(FleetBucket.want.prefix.count)
        guard let end = name.lastIndex(of: "."), let member = keys[String(name[..<end])].flatMap({ members[$0] }),
            want.key(member.subject.pipeline) == name
        else { return }
        switch want {
        case .refresh: handle(.demanded(stored.sequence), member)
        case .rollOut(let kind, let digest):
            handle(.ordered(FleetOrder(kind, digest, sequence: stored.sequence)), member)
        }
    }

    // MARK: Heads

    private func verified(_ stored: FleetStore.Stored, _ subject: FleetSubject) -> FleetRecord? {
        do throws(RecordRejection) {
            return try SignedRecord(stored.message.headers).verified(by: identity.publishers, for: subject)
        } catch {
            report(.rejected(pipeline: subject.pipeline, error))
            return nil
        }
    }

    func followHeads() async {
        guard let prefix = FleetBucket.head.republished,
            let subscription = try? await client.subscribe(
                NATSSubjectPattern("\(prefix)>"), limits: NATSBufferLimits(messages: 4_096, bytes: 8 << 20))
        else { return }
        while let delivery = await next(subscription) {
            switch delivery {
            case .message(let message): received(message)
            // A reconnect has its own catch-up.
            case .resubscribed: break
            case .dropped:
                let keys = Array(members.keys)
                add { await self.readHeads(of: keys) }
            }
        }
    }

    private func next(_ subscription: NATSSubscription) async -> NATSDelivery? {
        do throws(NATSError) {
            return try await subscription.next()
        } catch {
            disconnected(error.description)
            return nil
        }
    }

    private func received(_ message: NATSMessage) {
        guard let stored = try? FleetStore.stored(message) else { return }
        received(stored)
    }

    func received(_ stored: FleetStore.Stored) {
        guard stored.subject.hasPrefix(FleetBucket.head.prefix) else { return }
        let key = FleetKey(stored: stored.subject.dropFirst(FleetBucket.head.prefix.count))
        guard let member = members[key] else { return }
        if let record = verified(stored, member.subject) { handle(.head(record), member) }
    }

    // MARK: Damage

    /// The stored content of a record turned out to be damaged or incomplete. The members that fetch store it again with
    /// their next check.
    package func isUnusable(_ subject: FleetSubject, _ digest: ContentDigest) {
        let key = FleetKey(subject)
        guard let member = members[key] else { return }
        handle(.unusable(digest), member)
        client.assumeIsolated { client in
            guard let notice = try? NATSSubject("\(Self.damage)\(key)") else { return }
            // Without the right to publish it, a later change repairs the content.
            try? client.publish(notice, Array(digest.description.utf8))
        }
    }

    /// Receives the notices of damage. A forged one leads to one more request with the next check.
    func followDamage() async {
        guard identity.seed != nil,
            let subscription = try? await client.subscribe(NATSSubjectPattern("\(Self.damage)>"))
        else { return }
        while let delivery = try? await subscription.next() {
            guard case .message(let message) = delivery, message.payload.count == 64,
                let digest = ContentDigest(hexadecimal: String(decoding: message.payload, as: UTF8.self)),
                let member = members[FleetKey(stored: message.subject.dropFirst(Self.damage.count))]
            else { continue }
            handle(.unusable(digest), member)
        }
    }

    /// What the subjects of notices of damage begin with.
    static let damage = "ft.damaged."

    // MARK: Claims

    private func watchClaim(_ member: FleetMember) {
        guard let prefix = FleetBucket.claim.republished else { return }
        let (key, client) = (member.key, client)
        // Without it, the end of the wait and the answers to claims decide. The server gets the subscription before
        // any later request of this connection.
        let subscription = client.assumeIsolated { client in
            try? client.subscribe(NATSSubjectPattern("\(prefix)\(key)"))
        }
        guard let subscription else { return }
        member.claims = subscription
        queue.start { await self.follow(subscription, key) }
    }

    private func follow(_ subscription: NATSSubscription, _ key: FleetKey) async {
        while let delivery = try? await subscription.next() {
            guard let member = members[key], member.claims === subscription else { return }
            guard case .message(let message) = delivery, let stored = try? FleetStore.stored(message) else { continue }
            handle(.claim(FleetClaim(stored)), member)
        }
    }
}
