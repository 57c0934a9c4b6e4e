import FreshetCache
import FreshetConfiguration
import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetFleet
import FreshetModel
import FreshetNATS
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import FreshetSystemd
import Logging
import Synchronization

/// The membership of this machine in a fleet, as `freshet.yaml` configures it. Without it, each pipeline requests its
/// content itself, and there is no connection.
@DaemonActor
final class FleetService {
    private struct Membership {
        let definition: FleetDefinition
        /// Nil: the fleet cannot be used; `obstacle` says why.
        let client: FleetClient?
        let obstacle: String?
        /// Set to true to end the client.
        let ending = CurrentValue(false)
    }

    private struct Shared {
        var definition: PipelineDefinition
        var subject: FleetSubject
        var report = FleetReport()
        /// The record that the last run followed; nil: none, or this machine has requested the content itself since.
        var followed: FleetRecord?
    }

    /// The signals `fleet` of the pipelines, by name.
    nonisolated let trigger = Trigger(SignalName.fleet)
    private let context: DaemonContext
    private let store: CacheStore
    private let recorder: SignalRecorder
    /// Called when the state of the connection has changed; from any thread.
    private let status: @Sendable () -> Void
    /// Why there is no connection.
    private nonisolated let connectionObstacle = CurrentValue<String?>(nil)
    /// The client of the membership, for calls from other threads.
    private nonisolated let client = Mutex<FleetClient?>(nil)
    private var membership: Membership?
    private var shared: [String: Shared] = [:]
    /// The highest numbers of the records that each pipeline has followed; nil: not read yet. No pipeline goes back
    /// below them, also after a restart.
    private var numbers: [String: FleetNumbers]?
    private let identity = MachineIdentity.read()?.bytes ?? MachineIdentity.hostName

    init(
        _ context: DaemonContext, _ store: CacheStore, _ recorder: SignalRecorder,
        statusChanged status: @escaping @Sendable () -> Void
    ) {
        self.status = status
        self.context = context
        self.store = store
        self.recorder = recorder
    }

    // MARK: Configuration

    /// Joins a fleet, or leaves it. If nothing changed, the connection stays.
    func use(_ definition: FleetDefinition?) async {
        guard definition != membership?.definition else { return }
        let before = membership
        defer { before?.ending.value = true }
        guard let definition else {
            membership = nil
            client.withLock { $0 = nil }
            connectionObstacle.value = nil
            return
        }
        if numbers == nil { numbers = await store.fleetNumbers().mapValues { FleetNumbers(stored: $0) } }
        let new: Membership
        do throws(FleetMembershipError) {
            new = Membership(definition: definition, client: try await makeClient(definition), obstacle: nil)
        } catch {
            context.limiter.log(.fleetUnusable, [.error: .string(error.description)])
            new = Membership(definition: definition, client: nil, obstacle: error.description)
        }
        // Until here, runs use the previous membership: without one, they would request the origin.
        membership = new
        connectionObstacle.value = nil
        self.client.withLock { $0 = new.client }
        let pipelines = shared.values.map(\.definition)
        shared = [:]
        guard let client = new.client else { return }
        context.tasks.add { [ending = new.ending] in
            await withDiscardingTaskGroup { group in
                group.addTask { await client.run() }
                for await isEnding in ending where isEnding { break }
                group.cancelAll()
            }
        }
        for pipeline in pipelines { share(pipeline) }
    }

    private func makeClient(_ definition: FleetDefinition) async throws(FleetMembershipError) -> FleetClient {
        let seed = try await context.pools.configuration.run("configuration") {
            [credentials = Credentials(environment: context.options.environment)] () throws(FleetMembershipError) in
            try definition.seed(from: credentials)
        }
        // The client uses it on the loop, and reports itself why it cannot.
        await context.pools.helpers.run("libcurl") { _ = CurlLibrary.load() }
        let machine = machine(in: definition)
        return FleetClient(
            context.loop, try definition.connection(seed, named: machine),
            FleetClient.Identity(
                fleet: definition.name, machine: machine, version: Version.current,
                publishers: try definition.publisherKeys(), seed: definition.role == .fetch ? seed : nil,
                place: StableDelay.fraction(identity: identity, name: "fleet \(machine)")),
            domain: definition.domain, mirror: definition.mirror
        ) { [weak self, tasks = context.tasks, log = context.limiter, connectionObstacle, status] event in
            FleetLog.log(event, to: log)
            switch event {
            case .connected: connectionObstacle.value = nil
            case .disconnected(let reason): connectionObstacle.value = reason
            case .settled(let subject, let number):
                guard let service = self else { return }
                tasks.add { await service.remember(subject, number) }
                return
            case .rejected, .failed, .rolledOut: return
            }
            status()
        }
    }

    /// The name of this machine in the fleet: as configured, or its host name and a part of its identity, so that it is
    /// unique.
    private func machine(in fleet: FleetDefinition) -> String {
        if let name = fleet.machine { return name }
        let host = String(decoding: MachineIdentity.hostName.prefix { $0 != UInt8(ascii: ".") }, as: UTF8.self)
        let name = host.utf8.allSatisfy { isNameByte($0) } && !host.isEmpty ? host : "machine"
        let unique = identity.prefix(4).map { byte in
            byte < 16 ? "0\(String(byte, radix: 16))" : String(byte, radix: 16)
        }.joined()
        return "\(name)-\(unique)"
    }

    private func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// The network has changed: the connection is made again. On the loop's thread.
    nonisolated func beginEpoch(_ number: UInt64) { client.withLock(\.self)?.beginEpoch(number) }

    // MARK: Pipelines

    /// Shares a pipeline from now on, if it is configured. One with parameters is shared from its first run on, which
    /// has their values.
    func share(_ definition: PipelineDefinition) {
        guard definition.fleet != nil else { return forget(definition.name) }
        if definition.parameters.isEmpty {
            _ = share(definition, ParameterValues())
        } else if shared[definition.name] != nil {
            shared[definition.name]?.definition = definition
        }
    }

    /// Shares a pipeline no more.
    func forget(_ name: String) {
        guard let before = shared.removeValue(forKey: name) else { return }
        membership?.client?.remove(before.subject)
    }

    private func share(_ definition: PipelineDefinition, _ parameters: ParameterValues) -> FleetSubject? {
        guard let membership, let sharing = definition.fleet,
            let fingerprint = try? ContentDigest(of: definition.sharedProduct(with: parameters))
        else { return nil }
        let subject = FleetSubject(
            fleet: membership.definition.name, pipeline: definition.name, fingerprint: fingerprint)
        let before = shared[definition.name]
        var new = Shared(definition: definition, subject: subject)
        if let before, before.subject == subject { (new.report, new.followed) = (before.report, before.followed) }
        shared[definition.name] = new
        guard let client = membership.client else { return subject }
        if let before, before.subject != subject { client.remove(before.subject) }
        guard before?.subject != subject || before?.definition != definition else { return subject }
        client.add(
            subject, settings(definition, sharing, membership.definition),
            seen: numbers?[definition.name]?.number(of: subject) ?? 0
        ) {
            [trigger, recorder, name = definition.name] detail in
            recorder.recordOccurrence(SignalName.fleet, detail, pipeline: name)
            trigger.activate(for: name, detail)
        }
        return subject
    }

    private func remember(_ subject: FleetSubject, _ number: UInt64) async {
        var known = numbers?[subject.pipeline] ?? FleetNumbers()
        guard known.settled(subject, number) else { return }
        numbers?[subject.pipeline] = known
        await store.rememberFleet(subject.pipeline, known.stored)
    }

    private func settings(
        _ definition: PipelineDefinition, _ sharing: FleetSharing, _ fleet: FleetDefinition
    ) -> FleetSettings {
        let machine = machine(in: fleet)
        // Machines that were made from one image may have the same identity.
        let share = StableDelay.fraction(identity: identity, name: "fleet \(machine) \(definition.name)")
        return FleetSettings(
            machine: machine, fetches: fleet.role == .fetch,
            checkPeriod: definition.refresh.every.map { $0 + definition.refresh.randomDelay },
            freshFor: definition.refresh.freshFor, grace: sharing.grace, spread: fleet.spread,
            fallback: fleet.fallback.map { FleetSettings.Fallback(after: $0.after, rate: $0.rate) },
            rollOut: sharing.rollOut.map { RollOutPlan($0) },
            share: share, hasMirror: fleet.mirror != nil)
    }

    // MARK: Reports

    /// Whether this machine is a member of a fleet.
    nonisolated var hasClient: Bool { client.withLock { $0 != nil } }

    /// A run of a shared pipeline has ended.
    ///
    /// - Parameter record: what it followed; nil: it requested the origin.
    private func ended(_ subject: FleetSubject, _ end: SharedRunEnd, following record: FleetRecord?) {
        guard shared[subject.pipeline]?.subject == subject else { return }
        switch end {
        case .succeeded(let generation, _):
            shared[subject.pipeline]?.followed = record
            change(subject) { report in
                report.copy = generation.digest
                // The hook of other content says nothing about this one.
                if report.failure?.kind == .rejected || report.failure?.digest != generation.digest {
                    report.failure = nil
                }
            }
        case .failed(let failure):
            guard let record, failure.kind == .content else { return }
            // It may quote the content, which all members can read.
            let text = context.redactor.text(failure.message)
            change(subject) { $0.failure = FleetReport.Failure(.rejected, record.digest, text) }
        case .cancelled: break
        }
    }

    /// Readers see another generation, also after a rollback.
    func published(_ pipeline: String, _ generation: CurrentGeneration) {
        guard let subject = shared[pipeline]?.subject else { return }
        change(subject) { $0.copy = generation.withdrawnSince == nil ? generation.digest : nil }
    }

    /// A hook of a pipeline has ended.
    ///
    /// - Parameter error: nil: it succeeded.
    func hookEnded(_ pipeline: String, _ digest: ContentDigest, error: String?) {
        guard let subject = shared[pipeline]?.subject else { return }
        change(subject) { report in
            if let error {
                report.failure = FleetReport.Failure(.hook, digest, error)
            } else if report.failure?.kind == .hook {
                report.failure = nil
            }
        }
    }

    private func change(_ subject: FleetSubject, _ change: (inout FleetReport) -> Void) {
        guard var report = shared[subject.pipeline]?.report else { return }
        change(&report)
        shared[subject.pipeline]?.report = report
        membership?.client?.report(subject, report)
    }

    // MARK: Status

    /// The part of a pipeline in the fleet; nil: it is not shared.
    func part(of name: String) -> FleetPart? {
        guard membership != nil, let shared = shared[name] else { return nil }
        let record = shared.followed
        var part = FleetPart(
            machine: record?.madeBy, number: record?.number, checked: record?.checkedAt.microseconds)
        membership?.client?.assumeIsolated { client in
            part.waits = client.waits(shared.subject)
            part.rollOut = client.rollOut(shared.subject, without: shared.report.copy).map { Double($0) / 10_000 }
        }
        return part
    }

    /// The state of the connection, for people.
    var fact: String {
        guard let membership else { return "freshet.yaml has no fleet" }
        let role = membership.definition.role == .fetch ? "fetches for others" : "follows"
        return "\(membership.definition.name): \(role), \(shared.count) pipelines"
    }

    /// Why the fleet cannot be used now; nil: it can.
    var knownObstacle: String? { membership.flatMap { $0.obstacle ?? connectionObstacle.value } }
}

extension FleetService: ContentSharing {
    nonisolated func content(for request: SharingRequest) async throws(FetchError) -> SharingDecision {
        try await decide(request)
    }

    private func decide(_ request: SharingRequest) async throws(FetchError) -> SharingDecision {
        guard let membership else { return .origin }
        guard let client = membership.client, let subject = share(request.definition, request.parameters) else {
            throw .failed(RunFailure(.local, "the fleet cannot be used: \(membership.obstacle ?? "no SHA-256")"))
        }
        let decision = await client.begin(
            subject, FleetRequest(Self.kind(of: request.causes), copy: request.copy?.digest))
        switch decision {
        case nil:
            if Task.isCancelled { throw .cancelled }
            throw .failed(RunFailure(.transient, "the pipeline's part in the fleet has just changed"))
        case .fetchAlone?:
            return .originForAll { end in
                if case .succeeded(let generation, _) = end { await client.fetchedAlone(subject, generation.digest) }
                await self.ended(subject, end, following: nil)
            }
        case .keep?:
            guard let copy = request.copy else { throw .failed(Self.isChanged) }
            return .shared(
                SharedContent(digest: copy.digest, size: copy.size, validators: Validators()) {
                    (_) throws(RunFailure) in throw Self.isChanged
                }
            ) { end in await self.ended(subject, end, following: nil) }
        case .fetch?:
            return .originForAll { [store, name = request.definition.name, redactor = context.redactor] end in
                let content = FleetCopy(store, name, end)
                await client.ended(subject, FleetRunEnd(end) { redactor.text($0) }) {
                    (range) throws(FleetStoreError) in try await content.bytes(range)
                }
                await self.ended(subject, end, following: nil)
            }
        case .follow(let record)?:
            if record.digest != request.copy?.digest { log(record, of: request.definition.name) }
            return .shared(
                SharedContent(record, FleetKey(subject), client.bodies) {
                    await client.isUnusable(subject, record.digest)
                }
            ) { end in
                if case .succeeded = end { await client.followed(subject, number: record.number) }
                await self.ended(subject, end, following: record)
            }
        case .wait(let obstacle)?:
            let reason = await client.obstacle
            throw .failed(RunFailure(.transient, FleetLog.sentence(obstacle, because: reason)))
        }
    }

    private nonisolated static var isChanged: RunFailure {
        RunFailure(.transient, "the copy has changed during the run")
    }

    private func log(_ record: FleetRecord, of pipeline: String) {
        context.limiter.log(
            .fleetContent,
            [
                .pipeline: .string(pipeline), .source: .string(record.madeBy),
                .number: .stringConvertible(record.number), .bytes: .stringConvertible(record.size),
            ])
    }

    /// The kind of a run's request. A source that is known to have changed needs a check that begins now. A reload, a lost copy
    /// or other values of parameters need the newest content that the fleet has.
    private nonisolated static func kind(of causes: [RunCause]) -> FleetRequest.Kind {
        let signals = Set(causes.map(\.signal))
        if signals.contains(SignalName.operation) { return .operation }
        let others: Set = [SignalName.fleet, SignalName.reload, SignalName.loss, SignalName.parameter]
        if causes.contains(where: { $0.kind == .request && !others.contains($0.signal) }) { return .demand }
        return signals.contains(SignalName.fleet) ? .head : .environment
    }
}

extension RollOutPlan {
    /// From the configuration of a pipeline.
    init(_ steps: FleetSteps) {
        // Parts of 1,000,000.
        self.init(
            steps: steps.percentages.map { UInt32(($0 * 10_000).rounded()) }, length: steps.each,
            mostFailures: steps.failures)
    }
}
