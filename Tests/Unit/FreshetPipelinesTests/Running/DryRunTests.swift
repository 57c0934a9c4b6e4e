import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Dry runs: the caller gets the snapshot")
struct DryRunTests {
    private let executor = SerialTestExecutor()
    private let clock: ScriptedClock
    private let origin: ScriptedOrigin

    init() {
        clock = ScriptedClock(executor: executor)
        origin = ScriptedOrigin(clock: clock)
    }

    private func run(_ definition: PipelineDefinition) throws -> Result<DryRun.Outcome, FetchError> {
        let dryRun = DryRun(
            definition, with: ParameterSettings(for: definition).values(for: definition), fetcher: origin,
            transformer: ScriptedTransformer(), clock: clock,
            limits: RequestLimiter.Limits(total: 4, perOrigin: 2))
        let result = Lock<Result<DryRun.Outcome, FetchError>?>(nil)
        let task = Task(executorPreference: executor) {
            do throws(FetchError) {
                let outcome = try await dryRun.run()
                result.withLock { $0 = .success(outcome) }
            } catch {
                result.withLock { $0 = .failure(error) }
            }
        }
        try executor.runUntilIdle()
        if result.withLock({ $0 }) == nil {
            try clock.manual.advance(by: .seconds(3600), draining: executor)
        }
        defer { task.cancel() }
        return try #require(result.withLock { $0 })
    }

    @Test(
        "the result has the snapshot, its type and the number of requests; all requests are unconditional")
    func outcome() throws {
        origin.answers(.version("data", type: "text/plain", tag: "\"1\""))
        let outcome = try run(Stage.definition(RefreshPolicy())).get()
        #expect(outcome.snapshot.body.bytes == Array("data".utf8))
        #expect(outcome.mediaType == "text/plain")
        #expect(outcome.requests == 1 && outcome.failures.isEmpty)
        #expect(origin.asked.map(\.validators) == [nil])
    }

    @Test("the output of a program is JSON, whatever the answer was")
    func transformed() throws {
        origin.answers(.content("data", type: "text/plain"))
        let outcome = try run(Stage.definition(RefreshPolicy(), transform: "upper")).get()
        #expect(outcome.snapshot.body.bytes == Array("DATA".utf8))
        #expect(outcome.mediaType == "application/json")
    }

    @Test("a rejecting check, and a refusing origin, fail it like any run; there is no second attempt")
    func failures() throws {
        origin.answers(.content("data"))
        let refused = try run(Stage.definition(RefreshPolicy(), check: CheckRules(jq: "false")))
        guard case .failure(.failed(let failure)) = refused else {
            Issue.record("it was not refused")
            return
        }
        #expect(failure.kind == .content)
        origin.answers(.fails(RunFailure(.transient, "503")), .content("data"))
        guard case .failure(.failed(let transient)) = try run(Stage.definition(RefreshPolicy())) else {
            Issue.record("it was tried again")
            return
        }
        #expect(transient.message == "503")
    }

    @Test("it takes no longer than the pipeline's deadline")
    func deadline() throws {
        origin.answers(.hangs())
        guard case .failure(.failed(let failure)) = try run(Stage.definition(RefreshPolicy(deadline: .seconds(30))))
        else {
            Issue.record("it did not end")
            return
        }
        #expect(failure.kind == .deadline)
        #expect(origin.open == 0)
    }
}
