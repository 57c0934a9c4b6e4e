import FreshetEventLoop
import FreshetModel
import FreshetNATS
import NATSTestSupport
import Synchronization
import TestSupport
import Testing

@testable import FreshetFleet

/// Keys of RFC 8032, 7.1, as NKEYs.
private let seeds = [
    "SUAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YALCA",
    "SUAEZTIITMUP7FW2TW3MGRXMCFHA6W4KGGPTLK5GETNIZ5XNJ64KN63OVI",
]

private func seed(_ index: Int = 0) throws -> NKeySeed {
    try Array(seeds[index].utf8).withUnsafeBytes { bytes in try NKeySeed(bytes) }
}

private func digest(_ byte: UInt8) throws -> ContentDigest {
    try #require(ContentDigest(bytes: Array(repeating: byte, count: 32)))
}

/// A member on its own loop, with what it reported and fired.
private final class Member: Sendable {
    let client: FleetClient
    let events = Mutex<[FleetClient.Event]>([])
    let fired = Mutex<[String]>([])
    private let loop: EventLoop
    private let task: Task<Void, Never>

    init(_ name: String, _ server: NATSServer, seed: NKeySeed?, publishers: [NKeySeed]) throws {
        loop = try EventLoop()
        try loop.runInThread(named: name)
        var configuration = NATSConfiguration(servers: [try server.address()], name: name)
        configuration.timing.backoff = .milliseconds(10)
        configuration.timing.longestBackoff = .milliseconds(100)
        let identity = FleetClient.Identity(
            fleet: "prod", machine: name, version: "1",
            publishers: Set(try publishers.map { try NKeyPublicKey($0.publicKey) }), seed: seed)
        let report = Reporter()
        client = FleetClient(loop, configuration, identity) { report.send($0) }
        task = Task { [client] in await client.run() }
        report.member = { [weak self] event in self?.events.withLock { $0.append(event) } }
    }

    deinit {
        task.cancel()
        loop.stop()
    }

    func add(_ subject: FleetSubject, fetches: Bool = true, share: Double = 0, rollOut: RollOutPlan? = nil) {
        let settings = FleetSettings(
            machine: client.identity.machine, fetches: fetches, checkPeriod: .seconds(3_600), spread: .zero,
            rollOut: rollOut, share: share)
        client.add(subject, settings) { [weak self] detail in self?.fired.withLock { $0.append(detail) } }
    }

    func stop() { task.cancel() }

    func isConnected() async -> Bool { await eventually { await client.obstacle == nil } }

    /// Fetches for all.
    func publish(_ subject: FleetSubject, _ content: [UInt8], _ digest: ContentDigest) async throws {
        #expect(await client.begin(subject, FleetRequest(.operation)) == .fetch)
        await client.ended(
            subject,
            .succeeded(digest: digest, size: UInt64(content.count), Validators(entityTag: "\"1\"", lastModified: nil))
        ) { range in Array(content[Int(range.lowerBound)..<Int(range.upperBound)]) }
    }

    /// Runs until it follows a head; returns how often it fetched.
    func run(_ subject: FleetSubject) async -> (head: FleetRecord?, fetches: Int) {
        var fetches = 0
        while true {
            let copy = fetches > 0 ? try? digest(1) : nil
            switch await client.begin(subject, FleetRequest(.environment, copy: copy)) {
            case .fetch?:
                fetches += 1
                guard let digest = try? digest(1) else { return (nil, fetches) }
                await client.ended(subject, .succeeded(digest: digest, size: 3, Validators())) { _ in [1, 2, 3] }
            case .follow(let record)?: return (record, fetches)
            case .fetchAlone?, .wait?, nil: return (nil, fetches)
            }
        }
    }

    /// The content of a record.
    func content(_ record: FleetRecord, _ subject: FleetSubject) async throws -> [UInt8] {
        var content: [UInt8] = []
        for number in 0..<FleetBodies.chunks(of: record.size) {
            content += try await client.bodies.chunk(
                number, FleetKey(subject), record.digest, size: record.size)
        }
        return content
    }

    var log: String { events.withLock { "\($0)" } }

    var rejections: [RecordRejection] {
        events.withLock { events in
            events.compactMap { event in
                guard case .rejected(_, let rejection) = event else { return nil }
                return rejection
            }
        }
    }
}

extension FleetClient {
    fileprivate func unusable(_ subject: FleetSubject) -> ContentDigest? {
        members[FleetKey(subject)]?.machine.publication.unusable
    }

    fileprivate func isWaiting(_ subject: FleetSubject) -> Bool { members[FleetKey(subject)]?.waiter != nil }
}

/// Passes events on to a member that does not exist yet when its client is made.
private final class Reporter: Sendable {
    private let target = Mutex<(@Sendable (FleetClient.Event) -> Void)?>(nil)

    var member: (@Sendable (FleetClient.Event) -> Void)? {
        get { target.withLock { $0 } }
        set { target.withLock { $0 = newValue } }
    }

    func send(_ event: FleetClient.Event) { member?(event) }
}

@Suite(
    "A fleet with a real nats-server",
    .enabled(if: NATSServer.isAvailable, "needs nats-server; run Scripts/setup test"), .hangLimit
)
struct FleetClientTests {
    private static let jetStream = "jetstream { store_dir: \"DIRECTORY/store\" }"

    private func subject(_ pipeline: String = "jwks.v1") throws -> FleetSubject {
        FleetSubject(fleet: "prod", pipeline: pipeline, fingerprint: try digest(9))
    }

    /// A server with the buckets, and a member that fetches.
    private func fleet() async throws -> (NATSServer, Member) {
        let server = try await NATSServer(Self.jetStream)
        let member = try Member("ams-1", server, seed: try seed(), publishers: [try seed()])
        try #require(await eventually { await member.client.client.state.serverInfo != nil })
        for bucket in FleetBucket.allCases {
            #expect(try await member.client.buckets.prepare(bucket, FleetBuckets.standardLimits(bucket)) == .created)
        }
        return (server, member)
    }

    /// A server, a member that fetches and one that follows, and the pipeline that they share.
    private func pair() async throws -> (NATSServer, Member, Member, FleetSubject) {
        let (server, first) = try await fleet()
        let second = try Member("ams-2", server, seed: nil, publishers: [try seed()])
        let subject = try subject()
        for member in [first, second] {
            member.add(subject)
            #expect(await member.isConnected())
        }
        return (server, first, second, subject)
    }

    @Test("the buckets are created once, and their state is that of the server")
    func buckets() async throws {
        let (server, member) = try await fleet()
        defer { withExtendedLifetime(server) {} }
        let buckets = member.client.buckets
        for bucket in FleetBucket.allCases {
            let limits = FleetBuckets.standardLimits(bucket)
            #expect(try await buckets.prepare(bucket, limits) == .present)
            #expect(try await buckets.prepare(bucket, FleetBuckets.Limits(bytes: 1 << 20)) == .changed)
            let state = try await buckets.state(bucket)
            #expect(state.limits.bytes == 1 << 20 && state.isReadDirectly)
            #expect(state.isRepublished == (bucket.republished != nil) && state.hasLifetimes == bucket.hasLifetimes)
        }
    }

    @Test("one member fetches, and the others get its content with its validators and their signal")
    func share() async throws {
        let (server, first, second, subject) = try await pair()
        defer { withExtendedLifetime(server) {} }
        let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        try await first.publish(subject, content, try digest(1))
        #expect(await eventually { second.fired.withLock { !$0.isEmpty } })
        guard case .follow(let head)? = await second.client.begin(subject, FleetRequest(.head)) else {
            Issue.record("it does not follow")
            return
        }
        #expect(head.digest == (try digest(1)) && head.madeBy == "ams-1" && head.members == 2)
        #expect(head.validators.entityTag == "\"1\"")
        #expect(try await second.content(head, subject) == content)
        // The first one knows it, too.
        let own = await first.client.begin(subject, FleetRequest(.environment, copy: try digest(1)))
        guard case .follow(let known)? = own else {
            Issue.record("\(String(describing: own))")
            return
        }
        #expect(known == head)
        #expect(first.rejections.isEmpty && second.rejections.isEmpty)
    }

    @Test("of members that start together, one fetches and the others wait for it")
    func together() async throws {
        let (server, first) = try await fleet()
        let subject = try subject()
        let others = try (2...8).map { try Member("ams-\($0)", server, seed: try seed(), publishers: [try seed()]) }
        let results = await withTaskGroup(of: (head: FleetRecord?, fetches: Int).self) { group in
            for member in [first] + others {
                member.add(subject)
                group.addTask { await member.run(subject) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        for result in results { #expect(result.head?.digest == (try digest(1))) }
        #expect(results.map(\.fetches).reduce(0, +) == 1)
    }

    @Test("a poisoned, an unsigned and a replayed record change nothing, and are replaced by the next one")
    func poisoned() async throws {
        let (server, first, second, subject) = try await pair()
        defer { withExtendedLifetime(server) {} }
        try await first.publish(subject, [1], try digest(1))
        #expect(await eventually { await second.client.newest(subject)?.number == 1 })
        let store = first.client.store
        let genuine = try #require(try await store.last(.head, FleetKey(subject).description))
        try await first.publish(subject, [2], try digest(2))
        #expect(await eventually { await second.client.newest(subject)?.number == 2 })

        var record = FleetRecord(
            fleet: "prod", pipeline: subject.pipeline, fingerprint: subject.fingerprint, number: 9,
            digest: try digest(6), size: 1, checkedAt: WallTime(seconds: 1), madeBy: "x")
        let foreign = try #require(SignedRecord(record, signedBy: try seed(1)))
        try await store.put(.head, FleetKey(subject).description, headers: try foreign.headers())
        try await store.put(.head, FleetKey(subject).description, [1])
        record.pipeline = "other"
        let other = try #require(SignedRecord(record, signedBy: try seed()))
        try await store.put(.head, FleetKey(subject).description, headers: try other.headers())
        var replayed = NATSHeaders()
        for field in genuine.message.headers.fields where field.name.hasPrefix("Freshet-") {
            try replayed.append(field.name, field.value)
        }
        try await store.put(.head, FleetKey(subject).description, headers: replayed)
        #expect(await eventually { second.rejections.count == 4 })
        #expect(
            second.rejections == [
                .unknownPublisher(try seed(1).publicKey), .noRecord, .otherPipeline("other"),
                .older(number: 1, seen: 2),
            ])
        #expect(await second.client.newest(subject)?.digest == (try digest(2)))

        try await first.publish(subject, [3], try digest(3))
        #expect(await eventually { await second.client.newest(subject)?.digest == (try? digest(3)) })
    }

    @Test("a member that was away reads what changed meanwhile")
    func away() async throws {
        let (server, first) = try await fleet()
        let subjects = try (0..<5).map { try subject("p\($0)") }
        for subject in subjects { first.add(subject) }
        #expect(await first.isConnected())
        for subject in subjects { try await first.publish(subject, [1], try digest(1)) }
        let second = try Member("ams-2", server, seed: nil, publishers: [try seed()])
        for subject in subjects { second.add(subject) }
        for subject in subjects {
            #expect(
                await eventually { await second.client.newest(subject)?.number == 1 }, "\(second.log) \(first.log)"
            )
        }
        await server.kill()
        #expect(await eventually { await second.client.obstacle != nil })
        try await server.start()
        #expect(await first.isConnected())
        #expect(await second.isConnected())
        try await first.publish(subjects[3], [2], try digest(2))
        #expect(await eventually { await second.client.newest(subjects[3])?.digest == (try? digest(2)) })
    }

    @Test("a claim ends by itself when its fetcher is gone, and a pause has its length and reason")
    func claims() async throws {
        let (server, first) = try await fleet()
        defer { withExtendedLifetime(server) {} }
        let store = first.client.store
        let key = FleetKey(try subject()).description
        let held = FleetClaim.Holder(
            machine: "m", nonce: "n", pause: FleetPause(duration: .seconds(3), failures: 2, reason: "503"))
        let sequence = try await store.put(.claim, key, held.text, replacing: 0, lifetime: .seconds(1))
        let stored = try #require(try await store.last(.claim, key))
        #expect(FleetClaim(stored).sequence == sequence && FleetClaim(stored).holder == held)
        #expect(try await store.replace(.claim, key, held.text, replacing: 0) == .conflict)
        // Its end leaves a marker in its place, which the next claim replaces.
        #expect(
            await eventually {
                guard let marker = try? await store.last(.claim, key) else { return false }
                return FleetClaim(marker).holder == nil && marker.sequence > sequence
            })
        let marker = try #require(try await store.last(.claim, key))
        let next = try await store.replace(.claim, key, held.text, replacing: marker.sequence)
        guard case .stored(let number) = next else {
            Issue.record("\(next)")
            return
        }
        try await store.remove(.claim, key, replacing: number)
        #expect(FleetClaim(try #require(try await store.last(.claim, key))).holder == nil)
    }

    @Test("forged notices, times without a fraction and repeated header fields change nothing")
    func forged() async throws {
        let (server, first, second, subject) = try await pair()
        defer { withExtendedLifetime(server) {} }
        try await first.publish(subject, [1], try digest(1))
        #expect(await eventually { await second.client.newest(subject)?.number == 1 })
        let genuine = try #require(try await first.client.store.last(.head, FleetKey(subject).description))
        for time in ["2026-11-26T19:27:01Z", "2026-11-26T19:27:01.Z", "", "9999999999999999999999999999Z"] {
            var forged = NATSHeaders()
            for field in genuine.message.headers.fields where field.name.hasPrefix("Freshet-") {
                try forged.append(field.name, field.value)
            }
            try forged.append("Nats-Subject", genuine.subject)
            try forged.append("Nats-Sequence", "\(UInt64.max)")
            try forged.append("Nats-Time-Stamp", time)
            let client = first.client.client
            try await client.publish(try NATSSubject("ft.news.\(FleetKey(subject))"), headers: forged)
            try await client.publish(try NATSSubject("ft.claim.\(FleetKey(subject))"), [1], headers: forged)
            // Stored with fields of the publisher, to which the server appends its own.
            try await first.client.store.put(.head, FleetKey(subject).description, headers: forged)
        }
        try await first.publish(subject, [2], try digest(2))
        #expect(await eventually { await second.client.newest(subject)?.digest == (try? digest(2)) })
    }

    @Test("a purged bucket removes nothing, and the next check publishes again")
    func purged() async throws {
        let (server, first, second, subject) = try await pair()
        defer { withExtendedLifetime(server) {} }
        try await first.publish(subject, [1], try digest(1))
        #expect(await eventually { await second.client.newest(subject)?.number == 1 })
        for bucket in FleetBucket.allCases {
            _ = try await first.client.store.call("STREAM.PURGE.\(bucket.stream)")
        }
        #expect(await second.client.newest(subject)?.digest == (try digest(1)))
        try await first.publish(subject, [2], try digest(2))
        #expect(await eventually { await second.client.newest(subject)?.digest == (try? digest(2)) })
        #expect(await second.client.newest(subject)?.number == 2)
    }

    @Test("damaged content is stored again by the next check, although it did not change")
    func damaged() async throws {
        let (server, first) = try await fleet()
        defer { withExtendedLifetime(server) {} }
        let subject = try subject()
        first.add(subject)
        #expect(await first.isConnected())
        let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
        try await first.publish(subject, content, try digest(1))
        #expect(await eventually { await first.client.newest(subject)?.number == 1 })
        let key = "\(FleetKey(subject)).\(try digest(1)).1"
        try await first.client.store.put(.body, key, Array(repeating: 0, count: FleetStore.chunkSize))
        // A member that does not fetch finds it.
        let second = try Member("ams-2", server, seed: nil, publishers: [try seed()])
        second.add(subject, fetches: false)
        #expect(await second.isConnected())
        await second.client.isUnusable(subject, try digest(1))
        #expect(await eventually { await first.client.unusable(subject) == (try? digest(1)) })
        try await first.publish(subject, content, try digest(1))
        #expect(await eventually { await first.client.newest(subject)?.number == 2 })
        let record = try #require(await first.client.newest(subject))
        #expect(try await first.content(record, subject) == content)
    }

    @Test("only the new and the previous content stay, also after a restart of the fetcher")
    func others() async throws {
        let (server, first) = try await fleet()
        let subject = try subject()
        let key = FleetKey(subject)
        // Of a fetcher that has been restarted since.
        try await first.client.bodies.put(key, try digest(7), size: 2, rewrites: false) { _ in [1, 2] }
        first.add(subject)
        #expect(await first.isConnected())
        for number in UInt8(1)...3 {
            try await first.publish(subject, [number], try digest(number))
            #expect(await eventually { await first.client.newest(subject)?.number == UInt64(number) })
        }
        let expected = try Set([digest(2), digest(3)].map { "\(FleetBucket.body.prefix)\(key).\($0).0" })
        let store = first.client.store
        #expect(
            await eventually { Set((try? await store.subjects(.body, matching: "\(key).*.0")) ?? []) == expected })
        withExtendedLifetime(server) {}
    }

    @Test("a run that waits ends with its member")
    func ends() async throws {
        let (server, first) = try await fleet()
        defer { withExtendedLifetime(server) {} }
        let subject = try subject()
        first.add(subject, fetches: false)
        #expect(await first.isConnected())
        async let decision = first.client.begin(subject, FleetRequest(.environment))
        #expect(await eventually { await first.client.isWaiting(subject) })
        first.stop()
        #expect(await decision == nil)
    }

    @Test("a server without the buckets is named, and used as soon as they exist")
    func noBuckets() async throws {
        let server = try await NATSServer(Self.jetStream)
        let member = try Member("ams-1", server, seed: try seed(), publishers: [try seed()])
        #expect(
            await eventually {
                member.events.withLock { events in
                    events.contains {
                        if case .disconnected(let why) = $0 { why.contains("fleet setup") } else { false }
                    }
                }
            })
        for bucket in FleetBucket.allCases {
            _ = try await member.client.buckets.prepare(bucket, FleetBuckets.standardLimits(bucket))
        }
        #expect(await member.isConnected())
    }

    @Test("what members report is read with the records; a report with a failure is counted in a review")
    func reports() async throws {
        let (server, first, second, subject) = try await pair()
        defer { withExtendedLifetime(server) {} }
        try await first.publish(subject, [1], try digest(1))
        #expect(await eventually { await second.client.newest(subject)?.number == 1 })
        first.client.report(subject, FleetReport(copy: try digest(1)))
        second.client.report(
            subject, FleetReport(copy: nil, failure: .init(.rejected, try digest(1), "check.jq: false")))
        let survey = FleetSurvey(first.client.store, fleet: "prod", publishers: first.client.identity.publishers)
        let content = try #require(try await survey.contents(of: subject.pipeline).first)
        #expect(try content.record.get().digest == (try digest(1)))
        #expect(await eventually { (try? await survey.copies(of: content).count) == 2 })
        let copies = try await survey.copies(of: content).sorted { $0.machine < $1.machine }
        #expect(copies.map(\.machine) == ["ams-1", "ams-2"])
        #expect(try copies[0].report == FleetReport(copy: digest(1)))
        #expect(try copies[1].report.failure == .init(.rejected, digest(1), "check.jq: false"))
        let machines = try await survey.machines().sorted { $0.name < $1.name }
        #expect(machines.map(\.name) == ["ams-1", "ams-2"] && machines.map(\.fetches) == [true, false])
        // From a second ago on, and not from the future.
        let store = first.client.store
        let time = copies[1].reported
        #expect(try await store.list(.report, ">", since: time.advanced(by: .seconds(-1)), limit: 10).count == 2)
        #expect(try await store.list(.report, ">", since: time.advanced(by: .seconds(60)), limit: 10).isEmpty)
    }

    @Test("more messages than one answer has are read, and no more than the limit")
    func manyReports() async throws {
        let (server, first) = try await fleet()
        defer { withExtendedLifetime(server) {} }
        let store = first.client.store
        for number in 0..<2_100 { try await store.put(.report, "p.f.m\(number)") }
        #expect(try await store.list(.report, "p.f.*", limit: 10_000).count == 2_100)
        #expect(try await store.list(.report, "p.f.*", limit: 1_500).count == 1_500)
        #expect(try await store.list(.report, "q.*", limit: 10).isEmpty)
    }

    @Test("new content goes to a part of the fleet; an operator's demand and halt are carried out")
    func rollOut() async throws {
        let (server, first, second, subject) = try await pair()
        defer { withExtendedLifetime(server) {} }
        let plan = RollOutPlan(steps: [1, 1_000_000], length: .seconds(3_600), mostFailures: 3)
        first.add(subject, rollOut: plan)
        try await first.publish(subject, [1], try digest(1))
        try await first.publish(subject, [2], try digest(2))
        #expect(await eventually { await second.client.newest(subject)?.rollOut?.before == (try? digest(1)) })
        guard case .follow(let available)? = await second.client.begin(subject, FleetRequest(.head)) else {
            Issue.record("it does not follow")
            return
        }
        #expect(available.digest == (try digest(1)))
        #expect(try await second.content(available, subject) == [1])

        let store = first.client.store
        let halt = FleetWant.rollOut(.halt, try digest(2))
        try await store.put(.want, halt.key(subject.pipeline), halt.text)
        #expect(await eventually { await second.client.newest(subject)?.rollOut?.isHalted == true })
        #expect(await second.client.newest(subject)?.number == 3)

        let before = first.fired.withLock(\.count)
        let sequence = try await store.put(.want, FleetWant.refresh.key(subject.pipeline), FleetWant.refresh.text)
        #expect(await eventually { first.fired.withLock(\.count) > before })
        #expect(await first.client.begin(subject, FleetRequest(.head, copy: try digest(2))) == .fetch)
        let end = FleetRunEnd.succeeded(digest: try digest(2), size: 1, Validators())
        await first.client.ended(subject, end) { _ in [2] }
        #expect(await eventually { await second.client.newest(subject)?.answeredDemand == sequence })
        // The check does not end the halt.
        #expect(await second.client.newest(subject)?.rollOut?.isHalted == true)
    }
}
