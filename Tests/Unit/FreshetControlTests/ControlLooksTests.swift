import ControlTestSupport
import FreshetControl
import FreshetVarlink
import TestSupport
import Testing

@Suite(.serialized, .hangLimit) struct ControlLooksTests {
    @Test("a name may be a pattern, which may fit none; a name that is none is refused beside it")
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

    @Test("the daemon leaves out other states, and gives a page at a time")
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

    @Test("the daemon and all pipelines in short are asked for at once, however many there are")
    func overview() async throws {
        let service = ScriptedService((100...399).map { "p\($0)" })
        service.change { script in
            script.pipelines["p250"]?.state = .waiting
            script.pipelines["p250"]?.waitingFor = .network
        }
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            for _ in 1...2 {
                let (daemon, summaries) = try client.overview()
                #expect(daemon == (try client.daemon()))
                #expect(summaries == (try client.pipelines()).map { PipelineSummary($0) })
                #expect(summaries.count == 300)
            }
        }
    }

    @Test("in short is only said to those who take several replies")
    func summariesNeedMore() async throws {
        try await withControlServer(ScriptedService()) { path in
            let client = try VarlinkClient(path: path)
            #expect(throws: VarlinkClientError.refused(.expectedMore)) {
                try client.call("io.freshet.Control.Summarize")
            }
        }
    }

    @Test("what happened is told in several replies, of the pipelines that are meant and of none, and since when")
    func recent() async throws {
        let service = ScriptedService()
        for number: Int64 in 1...300 { service.events.publish(.signal("network", number: number, at: 10 + number)) }
        service.events.publish(.runStarted(RunStatus(number: 1, started: 400), of: "jwks", at: 400))
        service.events.publish(.runStarted(RunStatus(number: 1, started: 401), of: "catalogue", at: 401))
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            let all = try client.recentEvents()
            #expect(all.events.count == 302 && all.events.map(\.at) == all.events.map(\.at).sorted())
            // It has forgotten nothing: since it began.
            #expect(all.completeSince == 5)
            #expect(try client.recentEvents(["jwks"], since: 310).events.map(\.at) == [310, 400])
            for number: Int64 in 1...4_096 {
                service.events.publish(.signal("resume", number: number, at: 1_000 + number))
            }
            let later = try client.recentEvents()
            #expect(later.events.count == 4_096 && later.completeSince == 1_001)
        }
    }

    @Test("holding and releasing say whether that is new, and who asked")
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

    @Test("what looks at many takes more than one reply, and says so")
    func more() async throws {
        try await withControlServer(ScriptedService()) { path in
            let client = try VarlinkClient(path: path)
            for method in ["Describe", "Metrics", "RecentEvents"] {
                #expect(throws: VarlinkClientError.self) { try client.call("\(ControlInterface.name).\(method)") }
            }
        }
    }
}
