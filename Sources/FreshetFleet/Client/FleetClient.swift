package import FreshetEventLoop
package import FreshetModel
package import FreshetNATS

/// A member of a fleet: it keeps the connection to the engine, feeds the machine of each shared pipeline, and performs
/// their actions.
///
/// It is isolated to its loop's thread; its methods may be called from any thread. Between checks it has one connection,
/// one subscription, and no timer but the connection's.
package actor FleetClient {
    /// The identity of this member, and the publishers whose records count.
    package struct Identity: Sendable {
        /// The name of the fleet.
        package var fleet: String
        /// The name of this member, unique in the fleet: letters, digits, `-` and `_`.
        package var machine: String
        /// The version of Freshet, for the status of the fleet.
        package var version: String
        package var publishers: Set<NKeyPublicKey>
        /// The key that signs records; nil: this member does not fetch for others.
        package var seed: NKeySeed?
        /// The place of this member among all, from 0 to 1, always the same.
        package var place: Double

        package init(
            fleet: String, machine: String, version: String, publishers: Set<NKeyPublicKey>, seed: NKeySeed?,
            place: Double = 0
        ) {
            self.fleet = fleet
            self.machine = machine
            self.version = version
            self.publishers = publishers
            self.seed = seed
            self.place = place
        }
    }

    /// An event for the log.
    package enum Event: Sendable {
        case connected(server: String)
        /// There is no connection, or the buckets cannot be used; the text says why.
        case disconnected(String)
        /// A record does not count.
        case rejected(pipeline: String, RecordRejection)
        /// A run has followed the head of this number, or this member has published it.
        case settled(FleetSubject, number: UInt64)
        /// This member has stored the next step of a roll-out, or its halt.
        case rolledOut(FleetRecord)
        /// An operation on a bucket failed.
        case failed(pipeline: String, FleetStoreError)
    }

    /// Reads a range of the content of the copy, which is to be published.
    package typealias ContentReader = @Sendable (Range<UInt64>) async throws(FleetStoreError) -> [UInt8]

    /// The most operations on buckets at the same time.
    static let mostJobs = 64
    /// The pause before the buckets are tried again.
    static let retryPause: Duration = .seconds(5)

    package nonisolated let identity: Identity
    package nonisolated let store: FleetStore
    package nonisolated let bodies: FleetBodies
    package nonisolated let buckets: FleetBuckets
    /// The mirror of the site; nil: there is none.
    nonisolated let mirror: FleetStore?
    nonisolated let client: NATSClient
    nonisolated let loop: EventLoop
    let report: @Sendable (Event) -> Void
    var members: [FleetKey: FleetMember] = [:]
    /// The keys of the members, by the token of the pipeline: a pipeline has one definition at a time.
    var keys: [String: FleetKey] = [:]
    /// The sequence number of the last head at the time of the last connection: those before it are known. A notice does
    /// not change it, because it may be forged.
    var lastSequence: UInt64 = 0
    /// The pipelines whose heads were read at the last connection.
    var readKeys: Set<FleetKey> = []
    /// The engine's clock at an instant, while the buckets can be used.
    var clock: (time: WallTime, at: ContinuousClock.Instant)?
    /// Why the buckets cannot be used.
    package internal(set) var obstacle: String? = "there was no connection yet"
    /// The obstacle that was reported last.
    var reported: String?
    /// Counts connections, so that work for an earlier one ends.
    var connection: UInt64 = 0
    /// The connection whose heads were read from the mirror.
    var mirrorConnection: UInt64 = 0
    var retry: LoopTimer?
    let jobs: AsyncStream<FleetJobs.Start>
    var queue: FleetJobs
    /// The reports of this member's copies.
    var reports: ReportSchedule
    var reportTimer: LoopTimer?
    /// A leaf node keeps the connections of its members while its link to the buckets is down: so notices may be lost
    /// although the connection lasts, and the heads are read again from time to time.
    let isAtLeaf: Bool
    var catchUpTimer: LoopTimer?
    /// The pause between two readings of the heads.
    static let catchUpPeriod: Duration = .seconds(300)

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - domain: the domain of JetStream that has the buckets; nil: that of the server.
    ///   - mirror: the domain that has a mirror of the buckets; nil: there is none.
    ///   - report: called on the loop's thread.
    package init(
        _ loop: EventLoop, _ configuration: NATSConfiguration, _ identity: Identity, domain: String? = nil,
        mirror: String? = nil, report: @escaping @Sendable (Event) -> Void
    ) {
        self.loop = loop
        self.identity = identity
        self.report = report
        client = NATSClient(loop, configuration)
        store = FleetStore(client, domain: domain)
        self.mirror = mirror.map { [client] in FleetStore(client, domain: $0) }
        bodies = FleetBodies(store, mirror: self.mirror)
        buckets = FleetBuckets(store)
        let (jobs, start) = AsyncStream.makeStream(of: FleetJobs.Start.self)
        self.jobs = jobs
        queue = FleetJobs(limit: Self.mostJobs, start)
        reports = ReportSchedule(place: identity.place, at: .now)
        isAtLeaf = domain != nil
    }

    /// Connects, and keeps the connection until the task is cancelled.
    package func run() async {
        // The claims end before the connection does: cancellation queues this job before the client is resumed.
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                group.addTask { [client] in await client.run() }
                group.addTask { await self.followHeads() }
                group.addTask { await self.followDamage() }
                group.addTask { await self.followWants() }
                group.addTask { await self.followConnection() }
                for await start in jobs {
                    group.addTask {
                        await start.job()
                        if start.isLimited { await self.jobEnded() }
                    }
                }
                group.cancelAll()
            }
        } onCancel: {
            loop.perform(named: "fleet") { [weak self] in self?.assumeIsolated { $0.releaseClaims() } }
        }
        disconnected("the daemon stops", isFailure: false)
        // Runs do not wait for a member that is gone.
        for member in members.values { member.end() }
        members = [:]
    }

    /// Another machine need not wait until the claims of this one end by themselves.
    private func releaseClaims() {
        let claims = members.values.compactMap { member in
            member.machine.heldClaim.map { (key: member.key.description, sequence: $0) }
        }
        client.assumeIsolated { [store] client in
            for claim in claims {
                // Without a connection it ends by itself.
                try? store.removeUnanswered(.claim, claim.key, replacing: claim.sequence, on: client)
            }
        }
    }

    /// What the members of the fleet see of this member's copy of a pipeline. Calls have an effect in their order.
    package nonisolated func report(_ subject: FleetSubject, _ report: FleetReport) {
        loop.perform(named: "fleet") { [weak self] in
            self?.assumeIsolated { client in
                let key = FleetKey(subject)
                guard let member = client.members[key] else { return }
                client.reports.set(key, report, members: member.machine.known.record?.members ?? 1, at: .now)
                client.armReports()
            }
        }
    }

    /// The network has changed; see ``NATSClient/beginEpoch(_:isNetworkPresent:)``.
    package nonisolated func beginEpoch(_ number: UInt64) {
        loop.perform(named: "fleet") { [client] in client.assumeIsolated { $0.beginEpoch(number) } }
    }

    // MARK: Pipelines

    /// Shares a pipeline, or changes its settings. Calls have an effect in their order.
    ///
    /// - Parameters:
    ///   - number: the highest number of a head that was seen before.
    ///   - fire: fires the signal `fleet` of the pipeline; called on the loop's thread.
    package nonisolated func add(
        _ subject: FleetSubject, _ settings: FleetSettings, seen number: UInt64 = 0,
        fire: @escaping @Sendable (String) -> Void
    ) {
        loop.perform(named: "fleet") { [weak self] in
            self?.assumeIsolated { $0.share(subject, settings, seen: number, fire: fire) }
        }
    }

    private func share(
        _ subject: FleetSubject, _ settings: FleetSettings, seen number: UInt64,
        fire: @escaping @Sendable (String) -> Void
    ) {
        let key = FleetKey(subject)
        if let member = members[key] {
            member.fire = fire
            return handle(.configured(settings), member)
        }
        let member = FleetMember(subject, FleetMachine(settings, seen: number, at: .now), fire: fire)
        members[key] = member
        keys[FleetKey.token(of: subject.pipeline)] = key
        guard clock != nil else { return add { await self.readMirror(of: [key]) } }
        add { await self.readHeads(of: [key]) }
    }

    /// Shares a pipeline no more.
    package nonisolated func remove(_ subject: FleetSubject) {
        loop.perform(named: "fleet") { [weak self] in
            self?.assumeIsolated { client in
                let key = FleetKey(subject)
                client.members.removeValue(forKey: key)?.end()
                client.reports.remove(key)
                client.readKeys.remove(key)
                let token = FleetKey.token(of: subject.pipeline)
                if client.keys[token] == key { client.keys[token] = nil }
            }
        }
    }

    /// Decides where a run gets its content from; it may wait for another member.
    ///
    /// - Returns: nil: the pipeline is not shared any more, or the task was cancelled.
    package func begin(_ subject: FleetSubject, _ request: FleetRequest) async -> FleetDecision? {
        let key = FleetKey(subject)
        guard let member = members[key], member.waiter == nil else { return nil }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                guard !Task.isCancelled else { return waiter.resume(returning: nil) }
                member.waiter = waiter
                handle(.run(request), member)
            }
        } onCancel: {
            loop.perform(named: "fleet") { [weak self] in self?.assumeIsolated { $0.abandon(key) } }
        }
    }

    private func abandon(_ key: FleetKey) {
        guard let member = members[key], member.waiter != nil else { return }
        member.decide(nil)
        handle(.abandoned, member)
    }

    /// A run that requested the content for all has ended.
    ///
    /// - Parameter content: reads the copy, if the run succeeded.
    package func ended(_ subject: FleetSubject, _ end: FleetRunEnd, content: @escaping ContentReader) {
        guard let member = members[FleetKey(subject)] else { return }
        member.content = content
        handle(.ended(end), member)
    }

    /// A run has published the content of a head, or found that it is the copy.
    package func followed(_ subject: FleetSubject, number: UInt64) {
        if let member = members[FleetKey(subject)] { handle(.followed(number), member) }
    }

    /// A run has requested the content for this member alone, and the copy has this content now.
    package func fetchedAlone(_ subject: FleetSubject, _ digest: ContentDigest) {
        if let member = members[FleetKey(subject)] { handle(.fetchedAlone(digest), member) }
    }

    /// What a run of a pipeline waits for, in words; nil: none waits.
    package func waits(_ subject: FleetSubject) -> String? { members[FleetKey(subject)]?.machine.waits }

    /// The part of the fleet, in parts of 1,000,000, that a roll-out has reached without this member; nil: there is none.
    package func rollOut(_ subject: FleetSubject, without copy: ContentDigest?) -> UInt32? {
        guard let machine = members[FleetKey(subject)]?.machine, let record = machine.known.record,
            machine.available(record, to: copy) != record
        else { return nil }
        return record.rollOut?.share
    }

    /// The newest record of a pipeline; nil: none is known.
    package func newest(_ subject: FleetSubject) -> FleetRecord? { members[FleetKey(subject)]?.machine.known.record }
}
