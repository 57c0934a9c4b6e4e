import FreshetEventLoop
import FreshetModel
import FreshetNATS
import NATSTestSupport
import Synchronization
import TestSupport
import Testing

@testable import FreshetFleet

@Suite(
    "A fleet with a real nats-server",
    .enabled(if: NATSServer.isAvailable, "needs nats-server; run Scripts/setup test"), .hangLimit
)
struct FleetClientTests {
    @Test("the buckets are created once, and their state is that of the server")
    func buckets() async throws {
        let (server, member) = try await makeFleet()
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
        let (server, first, second, subject) = try await makePair()
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
        let (server, first) = try await makeFleet()
        let subject = try makeSubject()
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
        let (server, first, second, subject) = try await makePair()
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
        let (server, first) = try await makeFleet()
        let subjects = try (0..<5).map { try makeSubject("p\($0)") }
        for subject in subjects { first.add(subject) }
        #expect(await first.isConnected())
        try await first.publish(subjects, [1], try digest(1))
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
        let (server, first) = try await makeFleet()
        defer { withExtendedLifetime(server) {} }
        let store = first.client.store
        let key = FleetKey(try makeSubject()).description
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
        let (server, first, second, subject) = try await makePair()
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
        let (server, first, second, subject) = try await makePair()
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
        let (server, first) = try await makeFleet()
        defer { withExtendedLifetime(server) {} }
        let subject = try makeSubject()
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
        let (server, first) = try await makeFleet()
        let subject = try makeSubject()
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
        let (server, first) = try await makeFleet()
        defer { withExtendedLifetime(server) {} }
        let subject = try makeSubject()
        first.add(subject, fetches: false)
        #expect(await first.isConnected())
        async let decision = first.client.begin(subject, FleetRequest(.environment))
        #expect(await eventually { await first.client.isWaiting(subject) })
        first.stop()
        #expect(await decision == nil)
    }

    @Test("a server without the buckets is named, and used as soon as they exist")
    func noBuckets() async throws {
        let server = try await NATSServer(jetStream)
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
}
