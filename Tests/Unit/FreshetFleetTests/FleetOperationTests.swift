import FreshetEventLoop
import FreshetModel
import FreshetNATS
import NATSTestSupport
import Synchronization
import TestSupport
import Testing

@testable import FreshetFleet

@Suite(
    "The operation of a fleet with a real nats-server",
    .enabled(if: NATSServer.isAvailable, "needs nats-server; run Scripts/setup test"), .hangLimit
)
struct FleetOperationTests {
    @Test("what members report is read with the records; a report with a failure is counted in a review")
    func reports() async throws {
        let (server, first, second, subject) = try await makePair()
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
        let (server, first) = try await makeFleet()
        defer { withExtendedLifetime(server) {} }
        let store = first.client.store
        for number in 0..<2_100 { try await store.put(.report, "p.f.m\(number)") }
        #expect(try await store.list(.report, "p.f.*", limit: 10_000, inAnswersOf: 1_000).count == 2_100)
        #expect(try await store.list(.report, "p.f.*", limit: 1_500, inAnswersOf: 1_000).count == 1_500)
        #expect(try await store.list(.report, "q.*", limit: 10).isEmpty)
    }

    @Test("new content goes to a part of the fleet; an operator's demand and halt are carried out")
    func rollOut() async throws {
        let (server, first, second, subject) = try await makePair()
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

    @Test("a member that stops while it fetches ends its claim, so that another one need not wait")
    func stops() async throws {
        let (server, first) = try await makeFleet()
        defer { withExtendedLifetime(server) {} }
        let second = try Member("ams-2", server, seed: try seed(), publishers: [try seed()])
        var operations: [String?] = []
        // If the claim is renewed at the moment of the stop, its end comes too late, and it ends by itself: on a busy
        // machine that can happen.
        for attempt in 1...3 where !operations.contains("PURGE") {
            let member =
                attempt == 1 ? first : try Member("ams-1\(attempt)", server, seed: try seed(), publishers: [try seed()])
            let subject = try makeSubject("p\(attempt)")
            for member in [member, second] {
                member.add(subject)
                #expect(await member.isConnected())
            }
            #expect(await member.client.begin(subject, FleetRequest(.operation)) == .fetch)
            member.stop()
            let key = FleetKey(subject).description
            #expect(
                await eventually {
                    guard let last = try? await second.client.store.last(.claim, key) else { return false }
                    return FleetClaim(last).holder == nil
                })
            // Not the marker of a claim that has ended by itself.
            operations.append(try await second.client.store.last(.claim, key)?.message.headers["KV-Operation"])
        }
        #expect(operations.last == "PURGE", "\(operations)")
    }

    @Test("a member that was away for long reads all heads with one request, and the content of those that changed")
    func delta() async throws {
        let (server, first) = try await makeFleet()
        let subjects = try (0..<20).map { try makeSubject("p\($0)") }
        for subject in subjects { first.add(subject) }
        let second = try Member("ams-2", server, seed: nil, publishers: [try seed()])
        for subject in subjects { second.add(subject, fetches: false) }
        #expect(await first.isConnected())
        #expect(await second.isConnected())
        try await first.publish(subjects, [1], try digest(1))
        for subject in subjects {
            #expect(await eventually { await second.client.newest(subject)?.number == 1 })
            #expect(await second.run(subject).head?.digest == (try digest(1)))
        }
        second.stop()
        try await first.publish(Array(subjects[..<3]), [2], try digest(2))
        for subject in subjects[..<3] {
            #expect(await eventually { await first.client.newest(subject)?.number == 2 })
        }
        let observer = try await Observer(server, "$JS.API.DIRECT.GET.>")
        // It shares all of them before it connects.
        let third = try Member("ams-2", server, seed: nil, publishers: [try seed()], isStarted: false)
        for subject in subjects { third.add(subject, fetches: false, seen: 1) }
        third.start()
        #expect(await third.isConnected())
        for (number, subject) in subjects.enumerated() {
            #expect(await eventually { await third.client.newest(subject) != nil })
            let request = FleetRequest(.environment, copy: try digest(1))
            guard case .follow(let head)? = await third.client.begin(subject, request) else {
                Issue.record("it does not follow")
                continue
            }
            #expect(try head.digest == digest(number < 3 ? 2 : 1))
            if number < 3 { #expect(try await third.content(head, subject) == [2]) }
        }
        // One says that there are newer heads.
        // The observer has another connection.
        func bodies() -> Int { observer.subjects.count { $0.hasPrefix("$JS.API.DIRECT.GET.KV_FT_body") } }
        #expect(await eventually { bodies() >= 3 })
        #expect(bodies() == 3)
        #expect(observer.subjects.count { $0 == "$JS.API.DIRECT.GET.KV_FT_head" } == 2)
    }

    @Test("the head of a pipeline that is shared without a connection is read, also if it is older than others")
    func sharedMeanwhile() async throws {
        let (server, first) = try await makeFleet()
        let (older, subject) = (try makeSubject("older"), try makeSubject())
        for each in [older, subject] { first.add(each) }
        #expect(await first.isConnected())
        try await first.publish(older, [1], try digest(1))
        try await first.publish(subject, [2], try digest(2))
        let second = try Member("ams-2", server, seed: nil, publishers: [try seed()])
        second.add(subject, fetches: false)
        #expect(await eventually { await second.client.newest(subject)?.number == 1 })
        await server.kill()
        #expect(await eventually { await second.client.obstacle != nil })
        second.add(older, fetches: false)
        try await server.start()
        #expect(await eventually { await second.client.newest(older)?.number == 1 })
    }

    @Test("a record that the server is made to store by the address of an answer changes nothing")
    func replySubject() async throws {
        let (server, first, second, subject) = try await makePair()
        defer { withExtendedLifetime(server) {} }
        let (store, key) = (first.client.store, FleetKey(subject).description)
        try await first.publish(subject, [1], try digest(1))
        #expect(await eventually { await second.client.newest(subject)?.number == 1 })
        let old = try #require(try await store.last(.head, key))
        try await first.publish(subject, [2], try digest(2))
        #expect(await eventually { await second.client.newest(subject)?.number == 2 })
        let newest = try #require(try await store.last(.head, key))

        // A member may write its own state; the server answers a request for it to a subject of the bucket of heads.
        var fields = NATSHeaders()
        for field in old.message.headers.fields where field.name.hasPrefix("Freshet-") {
            try fields.append(field.name, field.value)
        }
        try await store.put(.status, "ams-2", headers: fields)
        try await second.client.client.publish(
            try NATSSubject("$JS.API.DIRECT.GET.KV_FT_status.$KV.FT_status.ams-2"),
            reply: try NATSSubject("\(FleetBucket.head.prefix)\(key)"))
        #expect(await eventually { (try? await store.last(.head, key)?.sequence) != newest.sequence })
        #expect(await eventually { second.rejections.contains(.older(number: 1, seen: 2)) })
        #expect(await second.client.newest(subject)?.digest == (try digest(2)))
        try await first.publish(subject, [3], try digest(3))
        #expect(await eventually { await second.client.newest(subject)?.digest == (try? digest(3)) })
    }

    @Test("records whose notices never arrived are read by the next catch-up")
    func catchUp() async throws {
        let (server, first) = try await makeFleet()
        // A stream that republishes nothing.
        let store = first.client.store
        _ = try await store.call("STREAM.DELETE.KV_FT_head")
        let configuration = #"{"name":"KV_FT_head","subjects":["$KV.FT_head.>"],"max_msgs_per_subject":1,"#
        _ = try await store.call(
            "STREAM.CREATE.KV_FT_head", Array((configuration + #""storage":"file","allow_direct":true}"#).utf8))
        let second = try Member("ams-2", server, seed: nil, publishers: [try seed()])
        let subject = try makeSubject()
        for member in [first, second] {
            member.add(subject)
            #expect(await member.isConnected())
        }
        for number in UInt8(1)...2 {
            try await first.publish(subject, [number], try digest(number))
            #expect(
                await eventually {
                    await second.client.catchUp()
                    return await second.client.newest(subject)?.digest == (try? digest(number))
                })
        }
    }

    @Test("messages that cannot be used are left out, and long ones are not stored")
    func hostileReports() async throws {
        let (server, first) = try await makeFleet()
        defer { withExtendedLifetime(server) {} }
        let store = first.client.store
        try await store.put(.report, "p.f.m1", FleetReport(copy: try digest(1)).text)
        try publishRaw("$KV.FT_report.p.f.evil\u{1B}[31m", "{}", to: server)
        #expect(await eventually { (try? await store.subjects(.report, matching: ">").count) == 2 })
        #expect(try await store.list(.report, ">", limit: 10).count == 1)
        await #expect(throws: FleetStoreError.self) {
            try await store.put(.report, "p.f.m2", [UInt8](repeating: 1, count: 10_000))
        }
    }
}
