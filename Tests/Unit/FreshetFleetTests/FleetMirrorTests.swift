import FreshetModel
import FreshetNATS
import NATSTestSupport
import Synchronization
import TestSupport
import Testing

@testable import FreshetFleet

@Suite(
    "A site with a mirror, with real nats-servers",
    .enabled(if: NATSServer.isAvailable, "needs nats-server; run Scripts/setup test"), .hangLimit
)
struct FleetMirrorTests {
    private struct Site {
        let hub: NATSServer
        let leaf: NATSServer
        let fetcher: Member
        let member: Member
        let mirrors: FleetBuckets
        let subject: FleetSubject
    }

    /// A hub with the buckets, and a leaf node with mirrors of heads and contents.
    private func makeSite() async throws -> Site {
        let hub = try await NATSServer(
            """
            jetstream { store_dir: "DIRECTORY/store", domain: hub }
            leafnodes { host: 127.0.0.1, port: -1 }
            """)
        let text = "Listening for leafnode connections on 127.0.0.1:"
        let end = try #require(hub.log.firstRange(of: text)?.upperBound)
        let port = hub.log[end...].prefix { $0.isNumber }
        let leaf = try await NATSServer(
            """
            jetstream { store_dir: "DIRECTORY/store", domain: site }
            leafnodes { remotes: [{ url: "nats://127.0.0.1:\(port)" }] }
            """)
        let fetcher = try Member("ams-1", hub, seed: try seed(), publishers: [try seed()])
        let member = try makeMember("ams-2", leaf)
        for client in [fetcher.client.client, member.client.client] {
            try #require(await eventually { await client.state.serverInfo != nil })
        }
        for bucket in FleetBucket.allCases {
            #expect(try await fetcher.client.buckets.prepare(bucket, FleetBuckets.standardLimits(bucket)) == .created)
        }
        let mirrors = FleetBuckets(FleetStore(member.client.client, domain: "site"))
        try #require(await eventually { (try? await member.client.buckets.state(.head)) != nil })
        for bucket in [FleetBucket.head, .body] {
            let limits = FleetBuckets.standardLimits(bucket)
            #expect(try await mirrors.prepareMirror(bucket, limits, of: "hub", at: "site") == .created)
            #expect(try await mirrors.prepareMirror(bucket, limits, of: "hub", at: "site") == .present)
        }
        let site = Site(
            hub: hub, leaf: leaf, fetcher: fetcher, member: member, mirrors: mirrors, subject: try makeSubject())
        fetcher.add(site.subject)
        member.add(site.subject, fetches: false, hasMirror: true)
        for each in [fetcher, member] { #expect(await each.isConnected()) }
        return site
    }

    private func makeMember(_ name: String, _ leaf: NATSServer) throws -> Member {
        try Member(name, leaf, seed: nil, publishers: [try seed()], domain: "hub", mirror: "site")
    }

    private let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    /// Publishes the content, and waits until the mirror has it and the member its head.
    private func publish(in site: Site) async throws -> FleetRecord {
        try await site.fetcher.publish(site.subject, content, try digest(1))
        #expect(await eventually { (try? await site.mirrors.state(.body).messages) == 3 })
        #expect(await eventually { (try? await site.mirrors.state(.head).messages) == 1 })
        return try #require(await site.member.run(site.subject).head)
    }

    @Test("content comes from the mirror, and from the hub if the mirror does not have it")
    func bodies() async throws {
        let site = try await makeSite()
        defer { withExtendedLifetime(site) {} }
        let head = try await publish(in: site)
        let observer = try await Observer(site.hub, "$JS.API.DIRECT.GET.KV_FT_body.>")
        #expect(try await site.member.content(head, site.subject) == content)
        #expect(observer.subjects == [])
        #expect(await eventually { (try? await site.mirrors.state(.body))?.mirror?.isConnected == true })

        // The mirror was emptied.
        let store = FleetStore(site.member.client.client, domain: "site")
        _ = try await store.call("STREAM.PURGE.KV_FT_body")
        #expect(try await site.member.content(head, site.subject) == content)
        #expect(await eventually { observer.subjects.count == 3 })
    }

    @Test("content of a mirror that does not have its digest comes from the hub the next time")
    func damaged() async throws {
        let site = try await makeSite()
        defer { withExtendedLifetime(site) {} }
        let head = try await publish(in: site)
        let observer = try await Observer(site.hub, "$JS.API.DIRECT.GET.KV_FT_body.>")
        let bodies = site.member.client.bodies
        var reader = bodies.reader(FleetKey(site.subject), head.digest, size: head.size)
        while try await reader.next() != nil {}
        #expect(observer.subjects == [])
        #expect(reader.isDamaged())
        var next = bodies.reader(FleetKey(site.subject), head.digest, size: head.size)
        while try await next.next() != nil {}
        #expect(await eventually { observer.subjects.count == 3 })
        // Now the hub is the cause.
        #expect(!next.isDamaged())
    }

    @Test("without the hub, a new member of the site takes the content from the mirror")
    func withoutHub() async throws {
        let site = try await makeSite()
        _ = try await publish(in: site)
        await site.hub.kill()
        let member = try makeMember("ams-3", site.leaf)
        member.add(site.subject, fetches: false, hasMirror: true)
        #expect(await eventually { member.fired.withLock { !$0.isEmpty } })
        guard case .follow(let head)? = await member.client.begin(site.subject, FleetRequest(.environment)) else {
            Issue.record("it does not follow: \(member.log)")
            return
        }
        #expect(try await member.content(head, site.subject) == content)
        #expect(await member.client.obstacle != nil)
    }
}
