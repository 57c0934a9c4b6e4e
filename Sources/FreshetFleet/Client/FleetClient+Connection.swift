import FreshetEventLoop
import FreshetModel
import FreshetNATS
import Glibc

/// The connection: what happens after it was made, and after it ended.
extension FleetClient {
    /// The most pipelines whose heads one request reads (nats-server answers 413 to more than 1,024 subjects).
    private static let keysPerRequest = 512

    func followConnection() async {
        for await event in client.events {
            guard case .state(let state) = event else { continue }
            switch state {
            case .connected:
                connection += 1
                prepare()
            // An attempt, or a wait: these are not failures.
            case .connecting, .stopped, .waitingForNetwork: disconnected(state.description, isFailure: false)
            case .disconnected, .refused: disconnected(state.description)
            }
        }
    }

    /// Uses the buckets from now on. If they cannot be used, it tries again while the connection lasts.
    private func prepare(_ present: UInt64, server: String) async {
        do throws(FleetStoreError) {
            try await useBuckets(present, server: server)
        } catch {
            guard present == connection else { return }
            lost(error.description)
            if mirrorConnection != present {
                mirrorConnection = present
                let keys = Array(members.keys)
                add { await self.readMirror(of: keys) }
            }
            let timer =
                retry ?? LoopTimer(loop, named: "fleet") { [weak self] in self?.assumeIsolated { $0.prepare() } }
            retry = timer
            timer.arm(at: .now + Self.retryPause)
        }
    }

    /// Uses the buckets of the present connection.
    private func prepare() {
        let (present, state) = (connection, client.assumeIsolated { $0.state })
        guard state.serverInfo != nil else { return }
        queue.start { await self.prepare(present, server: state.description) }
    }

    private func useBuckets(_ present: UInt64, server: String) async throws(FleetStoreError) {
        let (time, since) = (try await serverTime(), ContinuousClock.Instant.now)
        // Direct reads are all that a user of another account than that of the buckets may do.
        let last = try await store.newest(in: .head)?.sequence ?? 0
        let keys = Set(members.keys)
        // Pipelines that were shared without a connection may have older heads. A lower number: the engine has lost its
        // state.
        let unread = last < lastSequence ? keys : keys.subtracting(readKeys)
        var heads = try await heads(of: Array(unread), after: 0)
        if last > lastSequence {
            heads += try await self.heads(of: Array(keys.subtracting(unread)), after: lastSequence)
        }
        guard present == connection else { return }
        (lastSequence, readKeys) = (last, keys)
        for head in heads { received(head) }
        (obstacle, reported, clock) = (nil, nil, (time, since))
        armReports()
        armCatchUp()
        report(.connected(server: server))
        // Pipelines that were shared meanwhile are read next.
        let others = members.keys.filter { !keys.contains($0) }
        if !others.isEmpty { add { await self.readHeads(of: others) } }
        for key in keys {
            if let member = members[key] { handle(.connected(serverTime: now(by: time, since)), member) }
        }
        if identity.seed != nil { add { await self.readWants(of: Array(keys)) } }
    }

    /// Stores the status of this member, and returns when the server did so.
    private func serverTime() async throws(FleetStoreError) -> WallTime {
        do throws(FleetStoreError) {
            try await putStatus()
            guard let status = try await store.last(.status, identity.machine) else { throw .malformed("status") }
            return status.time
        } catch .refused {
            // The bucket is full, for instance by another member. Heads can be read nevertheless; then the clock of this
            // machine has to do.
            var time = timespec()
            clock_gettime(CLOCK_REALTIME, &time)
            return WallTime(seconds: Int64(time.tv_sec))
        }
    }

    private func armCatchUp() {
        guard isAtLeaf else { return }
        let timer =
            catchUpTimer
            ?? LoopTimer(loop, named: "fleet") { [weak self] in self?.assumeIsolated { $0.catchUp() } }
        catchUpTimer = timer
        timer.arm(at: .now + Self.catchUpPeriod)
    }

    /// Reads the heads that are newer than those that were read before.
    func catchUp() {
        guard clock != nil else { return }
        armCatchUp()
        add {
            // Without an answer, the next reading repairs it.
            guard let heads = try? await self.newerHeads() else { return }
            for head in heads { await self.received(head) }
        }
    }

    private func newerHeads() async throws(FleetStoreError) -> [FleetStore.Stored] {
        let present = connection
        let heads = try await heads(of: Array(members.keys), after: lastSequence)
        guard present == connection else { return [] }
        lastSequence = heads.map(\.sequence).reduce(lastSequence, max)
        return heads
    }

    /// The engine's clock now.
    private func now(by time: WallTime, _ instant: ContinuousClock.Instant) -> WallTime {
        time.advanced(by: instant.duration(to: .now))
    }

    /// Stores that this member exists, and what it is.
    func putStatus() async throws(FleetStoreError) {
        var writer = MemberWriter()
        writer.add("machine", identity.machine)
        writer.add("version", identity.version)
        writer.add("role", identity.seed == nil ? "follow" : "fetch")
        writer.add("pipelines", UInt64(members.count))
        try await store.put(.status, identity.machine, writer.finish(), lifetime: ReportSchedule.lifetime)
    }

    /// Reads what operators wanted while there was no connection.
    private func readWants(of keys: [FleetKey]) async {
        let names = Set(keys.compactMap { members[$0]?.subject.pipeline }).flatMap { FleetWant.keys($0) }
        for start in stride(from: 0, to: names.count, by: Self.keysPerRequest) {
            let part = Array(names[start..<min(names.count, start + Self.keysPerRequest)])
            // A fleet that was set up by an earlier version has no such bucket.
            guard let wants = try? await store.last(.want, part, after: 0) else { return }
            for want in wants { receivedWant(want) }
        }
    }

    /// Reads the heads that are newer than those that were read before, in one request for many pipelines.
    private func heads(
        of keys: [FleetKey], in source: FleetStore? = nil, after sequence: UInt64
    ) async throws(FleetStoreError) -> [FleetStore.Stored] {
        let source = source ?? store
        var heads: [FleetStore.Stored] = []
        for start in stride(from: 0, to: keys.count, by: Self.keysPerRequest) {
            let part = keys[start..<min(keys.count, start + Self.keysPerRequest)]
            heads += try await source.last(.head, part.map(\.description), after: sequence)
        }
        return heads
    }

    /// Without the buckets, reads the heads from the mirror of the site. They may be older than those of the buckets,
    /// whose numbers decide.
    func readMirror(of keys: [FleetKey]) async {
        guard let mirror, let heads = try? await heads(of: keys, in: mirror, after: 0) else { return }
        for head in heads { received(head) }
    }

    /// Reads the heads of pipelines that are new, or whose notices were lost.
    func readHeads(of keys: [FleetKey]) async {
        let present = connection
        do throws(FleetStoreError) {
            let heads = try await heads(of: keys, after: 0)
            guard present == connection, let clock else { return }
            for head in heads { received(head) }
            for key in keys {
                if let member = members[key] {
                    handle(.connected(serverTime: now(by: clock.time, clock.at)), member)
                }
            }
            if identity.seed != nil { await readWants(of: keys) }
        } catch {
            // The next notice or check repairs it.
            for key in keys {
                if let member = members[key] { report(.failed(pipeline: member.subject.pipeline, error)) }
            }
        }
    }

    func disconnected(_ reason: String, isFailure: Bool = true) {
        connection += 1
        retry?.disarm()
        lost(reason, isFailure: isFailure)
    }

    private func lost(_ reason: String, isFailure: Bool = true) {
        (clock, obstacle) = (nil, reason)
        reportTimer?.disarm()
        catchUpTimer?.disarm()
        if isFailure, reason != reported {
            reported = reason
            report(.disconnected(reason))
        }
        for member in members.values { handle(.disconnected, member) }
    }
}
