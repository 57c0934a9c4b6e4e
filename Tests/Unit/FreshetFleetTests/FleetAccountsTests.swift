import FreshetModel
import FreshetNATS
import NATSTestSupport
import Synchronization
import TestSupport
import Testing

@testable import FreshetFleet

@Suite(
    "The accounts of a fleet, with a real nats-server",
    .enabled(if: NATSServer.isAvailable, "needs nats-server; run Scripts/setup test"), .hangLimit
)
struct FleetAccountsTests {
    private struct Fleet {
        let server: NATSServer
        let admin: Member
        let fetcher: Member
        let follower: Member
        let `operator`: Member
    }

    private func newSeed() throws -> NKeySeed {
        try Array(NKeySeed.makeText().utf8).withUnsafeBytes { bytes in try NKeySeed(bytes) }
    }

    private func makeFleet() async throws -> Fleet {
        let (admin, fetch, follow, orders) = (try newSeed(), try seed(), try seed(1), try newSeed())
        let users: [(role: FleetAccounts.Role, key: NKeyPublicKey)] = [
            (.admin, try NKeyPublicKey(admin.publicKey)), (.fetch, try NKeyPublicKey(fetch.publicKey)),
            (.follow, try NKeyPublicKey(follow.publicKey)), (.operator, try NKeyPublicKey(orders.publicKey)),
        ]
        let server = try await NATSServer("\(jetStream)\n\(FleetAccounts(users).text)")
        func member(_ name: String, _ seed: NKeySeed?, _ user: NKeySeed) throws -> Member {
            try Member(name, server, seed: seed, publishers: [fetch], user: user)
        }
        let administrator = try member("admin", nil, admin)
        try #require(await eventually { await administrator.client.client.state.serverInfo != nil })
        for bucket in FleetBucket.allCases {
            #expect(
                try await administrator.client.buckets.prepare(bucket, FleetBuckets.standardLimits(bucket)) == .created)
        }
        return Fleet(
            server: server, admin: administrator, fetcher: try member("ams-1", fetch, fetch),
            follower: try member("ams-2", nil, follow), operator: try member("desk", nil, orders))
    }

    @Test("members of different accounts share, report, and carry out orders")
    func share() async throws {
        let fleet = try await makeFleet()
        let (subject, follower) = (try makeSubject(), fleet.follower)
        for member in [fleet.fetcher, follower] {
            member.add(subject, fetches: member === fleet.fetcher)
            #expect(await member.isConnected(), "\(member.log)")
        }
        let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        try await fleet.fetcher.publish(subject, content, try digest(1))
        #expect(await eventually { follower.fired.withLock { !$0.isEmpty } })
        let head = try #require(await follower.run(subject).head)
        #expect(try await follower.content(head, subject) == content)

        var report = FleetReport()
        report.copy = try digest(1)
        follower.client.report(subject, report)
        let orders = fleet.operator.client.store
        #expect(await eventually { ((try? await orders.list(.report, ">", limit: 10)) ?? []).count == 1 })
        let want = FleetWant.refresh
        try await orders.put(.want, want.key("jwks.v1"), want.text)
        #expect(await eventually { await fleet.fetcher.client.demand(subject) != nil })
        // It gives orders only.
        await #expect(throws: FleetStoreError.self) { try await orders.put(.report, "jwks=v1.desk") }
        #expect(fleet.server.count("violation") <= 1, "\(fleet.server.log)")
    }

    @Test("a member that follows cannot store by the address of an answer")
    func replySubject() async throws {
        let fleet = try await makeFleet()
        let (subject, follower) = (try makeSubject(), fleet.follower)
        let key = FleetKey(subject)
        follower.add(subject, fetches: false)
        fleet.fetcher.add(subject)
        #expect(await follower.isConnected())
        #expect(await fleet.fetcher.isConnected())
        try await fleet.fetcher.publish(subject, [1], try digest(1))
        #expect(await eventually { await follower.client.newest(subject)?.number == 1 })
        try await follower.client.store.put(.status, "ams-2", Array("{}".utf8))
        // The fetching member releases its claim a moment after it has published.
        let claims = fleet.fetcher.client.store
        #expect(
            await eventually {
                guard let last = try? await claims.last(.claim, "\(key)") else { return false }
                return FleetClaim(last).holder == nil
            })

        let buckets = fleet.admin.client.buckets
        var before: [UInt64] = []
        let attacked: [FleetBucket] = [.head, .body, .claim, .want]
        for bucket in attacked { before.append(try await buckets.state(bucket).lastSequence) }
        for bucket in attacked {
            for target in ["\(key)", "jwks=v1.refresh"] {
                try await follower.client.client.publish(
                    try NATSSubject("$JS.API.DIRECT.GET.KV_FT_status.$KV.FT_status.ams-2"),
                    reply: try NATSSubject("\(bucket.prefix)\(target)"))
            }
        }
        // Its own reports do not remove those of others.
        let report = try NATSSubject("\(FleetBucket.report.prefix)\(key).ams-2")
        try await fleet.fetcher.client.store.put(.report, "\(key).ams-1", Array("{}".utf8))
        var rollup = NATSHeaders()
        try rollup.append("Nats-Rollup", "all")
        try await follower.client.client.publish(report, headers: rollup)
        // The server works off the messages of a connection in their order.
        for _ in 0..<3 { try await follower.client.store.put(.status, "ams-2", Array("{}".utf8)) }
        var after: [UInt64] = []
        for bucket in attacked { after.append(try await buckets.state(bucket).lastSequence) }
        #expect(before == after)
        #expect(try await fleet.fetcher.client.store.last(.report, "\(key).ams-1") != nil)
    }

    @Test("a full bucket of states does not keep a member from following")
    func fullStatus() async throws {
        let fleet = try await makeFleet()
        let subject = try makeSubject()
        fleet.fetcher.add(subject)
        #expect(await fleet.fetcher.isConnected())
        try await fleet.fetcher.publish(subject, [1], try digest(1))
        let limits = FleetBuckets.Limits(bytes: 1)
        #expect(try await fleet.admin.client.buckets.prepare(.status, limits) == .changed)
        let member = try Member("ams-9", fleet.server, seed: nil, publishers: [try seed()], user: try seed(1))
        member.add(subject, fetches: false)
        #expect(await member.isConnected(), "\(member.log)")
        #expect(await eventually { await member.client.newest(subject)?.number == 1 })
    }
}
