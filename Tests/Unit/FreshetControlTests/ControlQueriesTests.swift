import ControlTestSupport
import FreshetControl
import FreshetVarlink
import Glibc
import TestSupport
import Testing

@Suite(.serialized, .hangLimit) struct ControlQueriesTests {
    @Test("a pattern may match no pipeline, but an unknown name beside it is refused")
    func patterns() async throws {
        try await withControlServer(ScriptedService(["jwks", "jwks-old", "flags"])) { path in
            let client = try ControlClient(path: path)
            #expect(try client.pipelines(["jwks*"]).map(\.name) == ["jwks", "jwks-old"])
            #expect(try client.pipelines(["fl[a]gs", "jwks"]).map(\.name) == ["flags", "jwks"])
            #expect(try client.pipelines(["z?"]).isEmpty)
            #expect(throws: ControlClient.Failure.refused(.noSuchPipeline(name: "flgs", suggestion: "flags"))) {
                try client.pipelines(["jwks*", "flgs"])
            }
            #expect(try client.descriptions(["*old"]).map(\.name) == ["jwks-old"])
            #expect(try client.counters(["flags"]).map(\.name) == ["flags"])
        }
    }

    @Test("the daemon filters by state, and sends one page at a time")
    func pages() async throws {
        let service = ScriptedService((1...9).map { "p\($0)" })
        service.change { script in
            for name in ["p2", "p4", "p6"] { script.pipelines[name]?.state = .failed }
        }
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            #expect(try client.pipelines(.init(states: [.failed])).map(\.name) == ["p2", "p4", "p6"])
            #expect(try client.pipelines(.init(states: [.failed], limit: 2)).map(\.name) == ["p2", "p4"])
            #expect(try client.pipelines(.init(after: "p4", limit: 2)).map(\.name) == ["p5", "p6"])
            #expect(try client.pipelines(.init(states: [.failed], after: "p4")).map(\.name) == ["p6"])
            #expect(throws: ControlClient.Failure.self) { try client.pipelines(.init(limit: 0)) }
            #expect(
                try client.summaries(.init(names: ["p?"], states: [.failed], limit: 2)).map(\.name) == ["p2", "p4"])
        }
    }

    @Test("overview requests the daemon and all summaries together, for any number of pipelines")
    func overview() async throws {
        let service = ScriptedService((100...399).map { "p\($0)" })
        service.change { script in
            script.pipelines["p250"]?.state = .waiting
            script.pipelines["p250"]?.waitingFor = .network
        }
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            for _ in 1...2 {
                let overview = try client.overview()
                #expect(overview.daemon == (try client.daemon()))
                #expect(overview.summaries == (try client.pipelines()).map { PipelineSummary($0) })
                #expect(overview.summaries.count == 300 && overview.isComplete)
                #expect(try client.overview(limit: 300) == overview)
            }
        }
    }

    @Test("overview of more pipelines than its limit has those that failed or are held")
    func largeOverview() async throws {
        let service = ScriptedService((100...399).map { "p\($0)" })
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            let good = try client.overview(limit: 299)
            #expect(good.summaries.isEmpty && !good.isComplete && !good.isCut)
            service.change { script in
                script.pipelines["p250"]?.state = .failed
                script.pipelines["p120"]?.state = .held
                script.pipelines["p130"]?.state = .waiting
            }
            let overview = try client.overview(limit: 2)
            #expect(overview.summaries.map(\.name) == ["p120", "p250"])
            #expect(!overview.isComplete && !overview.isCut)
            let cut = try client.overview(limit: 1)
            #expect(cut.summaries.map(\.name) == ["p120"] && cut.isCut)
        }
    }

    @Test("summaries are only sent to clients that accept several replies")
    func summariesNeedMore() async throws {
        try await withControlServer(ScriptedService()) { path in
            let client = try VarlinkClient(path: path)
            #expect(throws: VarlinkClientError.refused(.expectedMore)) {
                try client.call("io.freshet.Control.Summarize")
            }
        }
    }

    @Test("recent events of the selected pipelines and of no pipeline are sent in several replies, with their start")
    func recent() async throws {
        let service = ScriptedService()
        for number: Int64 in 1...300 { service.events.publish(.signal("network", number: number, at: 10 + number)) }
        service.events.publish(.runStarted(RunStatus(number: 1, started: 400), of: "jwks", at: 400))
        service.events.publish(.runStarted(RunStatus(number: 1, started: 401), of: "catalogue", at: 401))
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            let all = try client.recentEvents()
            #expect(all.events.count == 302 && all.events.map(\.at) == all.events.map(\.at).sorted())
            // No event has been dropped: the events are complete since the daemon started.
            #expect(all.completeSince == 5)
            #expect(try client.recentEvents(["jwks"], since: 310).events.map(\.at) == [310, 400])
            for number: Int64 in 1...4_096 {
                service.events.publish(.signal("resume", number: number, at: 1_000 + number))
            }
            let later = try client.recentEvents()
            #expect(later.events.count == 4_096 && later.completeSince == 1_001)
        }
    }

    /// A service with more data than fits into the kernel's buffers and one reply.
    private func largeService() -> ScriptedService {
        let service = ScriptedService((1...600).map { "p\($0)" })
        service.change { script in
            for name in script.pipelines.keys {
                let text = String(repeating: "x", count: 2_000)
                script.pipelines[name]?.failure = FailureStatus(
                    message: text, since: 1, attempts: 1, publicMessage: text)
            }
        }
        for number: Int64 in 1...4_096 {
            service.events.publish(
                .signal("network", number: number, detail: String(repeating: "y", count: 200), at: number))
        }
        return service
    }

    /// Clients that call and do not read.
    private func unreadClients(_ count: Int, _ path: String) throws -> [VarlinkClient] {
        try (0..<count).map { number in
            let client = try VarlinkClient(path: path)
            try client.begin(ControlInterface.name + (number.isMultiple(of: 2) ? ".RecentEvents" : ".List"))
            return client
        }
    }

    @Test("a client that does not read costs the daemon one bounded reply, and gets all replies when it reads")
    func unread() async throws {
        try await withControlServer(largeService()) { path, server in
            let clients = try unreadClients(20, path)
            var before = -1
            #expect(
                eventually {
                    defer { before = server.pendingOutputBytes }
                    // Waits until nothing changes during so many calls of another client.
                    for _ in 0..<20 { _ = try? ControlClient(path: path).logLevel() }
                    return before > 0 && before == server.pendingOutputBytes && server.clientCount >= 20
                })
            // The envelope of a reply is small.
            #expect(server.pendingOutputBytes <= 20 * (ControlDispatcher.replyBytes + 100))
            var events = 0
            try clients[0].takeReplies { reply in
                #expect(reply.json.count <= ControlDispatcher.replyBytes)
                events += (try? reply.decode(as: ControlMessage.RecentEvents.self).events.count) ?? 0
                return true
            }
            #expect(events == 4_096)
            var names: [String] = []
            try clients[1].takeReplies { reply in
                #expect(reply.json.count <= ControlDispatcher.replyBytes)
                names += (try? reply.decode(as: ControlMessage.Pipelines.self).pipelines.map(\.name)) ?? []
                return true
            }
            #expect(names == (1...600).map { "p\($0)" }.sorted())
        }
    }

    @Test("events are not kept for a client that does not read; the client learns since when they are complete")
    func forgottenMeanwhile() async throws {
        let service = largeService()
        try await withControlServer(service) { path, server in
            let client = try VarlinkClient(path: path)
            try client.begin(ControlInterface.name + ".RecentEvents")
            #expect(eventually { server.pendingOutputBytes > 0 })
            for number: Int64 in 4_097...6_096 {
                service.events.publish(.signal("resume", number: number, at: number))
            }
            var times: [Int64] = []
            var completeSince: Int64 = 0
            try client.takeReplies { reply in
                guard let reply = try? reply.decode(as: ControlMessage.RecentEvents.self) else { return false }
                times += reply.events.map(\.at)
                completeSince = reply.completeSince
                return true
            }
            #expect(completeSince == 2_001)
            #expect(times.filter { $0 >= completeSince } == Array(2_001...4_096))
            #expect(times == times.sorted() && times.first == 1)
        }
    }

    @Test(
        "a client that does not read its replies is closed, but a follower without events is not")
    func unreadEnds() async throws {
        let service = largeService()
        try await withControlServer(service, silence: .milliseconds(20)) { path, server in
            let follower = try VarlinkClient(path: path)
            try follower.begin(ControlInterface.name + ".Monitor")
            #expect(eventually { (try? follower.takeReply()) != nil })
            let clients = try unreadClients(20, path)
            // The test must not read, as this would continue the stream; poll reports a hang-up in any case.
            for client in clients {
                #expect(
                    eventually {
                        var entry = pollfd(fd: client.rawDescriptor, events: 0, revents: 0)
                        return poll(&entry, 1, 0) == 1
                    })
            }
            #expect(eventually { server.clientCount == 1 })
            #expect(server.pendingOutputBytes == 0)
            service.events.publish(.signal("network", number: 1, at: 1))
            #expect(eventually { (try? follower.takeReply()) != nil })
            withExtendedLifetime(clients) {}
        }
    }

    @Test("hold and release report whether anything changed, and pass the caller")
    func hold() async throws {
        let service = ScriptedService()
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            #expect(try client.hold("jwks").changed)
            #expect(try !client.hold("jwks").changed)
            #expect(try client.pipelines(["jwks"]).first?.heldSince == 1_000)
            #expect(try client.release("jwks").changed)
            #expect(try !client.release("jwks").changed)
            #expect(throws: ControlClient.Failure.refused(.noSuchPipeline(name: "jwk", suggestion: "jwks"))) {
                try client.hold("jwk")
            }
        }
        #expect(service.asked.allSatisfy { $0.contains(" jwks for user ") } && service.asked.count == 4)
    }

    @Test("methods for many pipelines require more")
    func more() async throws {
        try await withControlServer(ScriptedService()) { path in
            let client = try VarlinkClient(path: path)
            for method in ["Describe", "Metrics", "RecentEvents"] {
                #expect(throws: VarlinkClientError.self) { try client.call("\(ControlInterface.name).\(method)") }
            }
        }
    }
}
