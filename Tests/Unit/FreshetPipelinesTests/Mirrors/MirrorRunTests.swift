import FreshetModel
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("A run with mirrors")
struct MirrorRunTests {
    private func stage(
        _ check: CheckRules = CheckRules(), budget: RequestBudget? = nil, deadline: Duration = .zero,
        whenRunning: WhenRunning = .queue
    ) throws -> Stage {
        var policy = RefreshPolicy(quiet: .zero, freshFor: .zero, deadline: deadline)
        policy.retry = RetryPolicy(from: .seconds(5000), to: .seconds(5000))
        policy.budget = budget
        policy.whenRunning = whenRunning
        var source = HTTPSource(url: "https://a.example/", host: "a.example")
        source.mirrors = Mirrors(
            ["a", "b"].map { Mirrors.Mirror(url: "https://\($0).example/", host: "\($0).example") })
        return try Stage(
            PipelineDefinition(
                name: "test", source: .http(source), refresh: policy, check: check, cache: CacheRules(file: "data")),
            helpers: CheckHelpers(verifier: ScriptedVerifier(keys: [:])))
    }

    private func begin(_ stage: Stage, _ answers: ScriptedOrigin.Answer...) throws {
        for (place, answer) in answers.enumerated() { stage.origin.add(answer, first: place == 0) }
        try stage.start()
        try stage.fire("start")
    }

    /// The mirrors that were asked, with the tag that they got.
    private func asked(_ stage: Stage) -> [String] {
        stage.origin.asked.map { asked in
            guard case .http(let source) = asked.source else { return "" }
            return source.host.prefix(1) + (asked.validators?.entityTag.map { " \($0)" } ?? "")
        }
    }

    private static let busy = ScriptedOrigin.Answer.fails(RunFailure(.transient, "a: 503"))

    @Test("the next mirror is asked in the same run, and validators stay at their mirror")
    func next() throws {
        let stage = try stage()
        try begin(
            stage, .version("one", tag: "\"1\""), .version("one", tag: "\"1\""), Self.busy,
            .version("one", tag: "\"2\""), .version("one", tag: "\"2\""))
        try stage.fire("reload")
        try stage.fire("reload")
        try stage.fire("reload")
        #expect(asked(stage) == ["a", "a \"1\"", "a \"1\"", "b", "b \"2\""])
        #expect(stage.outcomes == [.changed, .unchanged, .unchanged, .unchanged])
        #expect(stage.runner.status.mirror == "https://b.example/")
        #expect(stage.runner.status.lastRun?.mirror == "https://b.example/")
    }

    @Test("if all mirrors fail, the run fails with all messages, and waits only if all sent Retry-After")
    func all() throws {
        let stage = try stage()
        try begin(
            stage, .fails(RunFailure(.connection, "a: refused")),
            .fails(RunFailure(.transient, "b: 503", retryAfter: .seconds(600))))
        let failure = try #require(stage.runner.status.failing?.failure)
        #expect(failure.message == "all mirrors failed: a: refused; b: 503")
        #expect(failure.kind == .transient && failure.retryAfter == nil)
        // The mirror with Retry-After is left alone.
        stage.origin.answers(.fails(RunFailure(.transient, "a: 503", retryAfter: .seconds(60))))
        try stage.fire("reload")
        #expect(asked(stage) == ["a", "b", "a"])
        #expect(try #require(stage.runner.status.failing?.failure).retryAfter == .seconds(60))
    }

    @Test("content that a check rejects for itself is rejected without another mirror")
    func rejected() throws {
        var check = CheckRules()
        check.minBytes = 100
        let stage = try stage(check)
        try begin(stage, .content("short"))
        #expect(asked(stage) == ["a"])
    }

    @Test("after a signature file that is too long, the next mirror is asked")
    func signatureFile() throws {
        var check = CheckRules()
        check.minisign = SignatureRule(
            .key(try MinisignKey("RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3")))
        let stage = try stage(check)
        let tooLong = ScriptedOrigin.Answer.fails(RunFailure(.content, "a has 20,000 bytes"))
        try begin(stage, .content("one"), tooLong, .content("one"), tooLong)
        #expect(asked(stage) == ["a", "a", "b", "b"])
        let failure = try #require(stage.runner.status.failing?.failure)
        #expect(failure.kind == .content && failure.message.hasPrefix("all mirrors failed: check.minisign: a has"))
    }

    @Test("a mirror that does not answer until the deadline is asked after the others in the next run")
    func deadline() throws {
        let stage = try stage(deadline: .seconds(30))
        try begin(stage, .hangs(), .content("one"))
        try stage.advance(30)
        #expect(stage.outcomes == [.failed])
        try stage.fire("reload")
        #expect(asked(stage) == ["a", "b"])
        #expect(stage.outcomes == [.failed, .changed])
    }

    @Test("a run that a signal ends early says nothing about its mirror")
    func superseded() throws {
        let stage = try stage(deadline: .seconds(30), whenRunning: .restart)
        try begin(stage, .hangs(), .content("one"))
        try stage.fire("reload")
        #expect(asked(stage) == ["a", "a"])
        #expect(stage.outcomes == [.superseded, .changed])
    }

    @Test("the budget limits the attempts")
    func budget() throws {
        let stage = try stage(budget: RequestBudget(1, per: .hour))
        try begin(stage, Self.busy)
        #expect(asked(stage) == ["a"])
        #expect(stage.runner.status.failing?.failure.message == "a: 503")
    }
}
