import FreshetEventLoop
import FreshetPipelines
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("Long output of commands")
struct CommandOutputTests {
    let running: RunningLoop
    let runner: CommandRunner

    init() throws {
        running = try RunningLoop()
        runner = CommandRunner(
            running.loop, workers: WorkerPool(), environment: ["LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"])
    }

    private func run(
        _ script: String, _ keeper: ScriptedKeeper, maxBytes: UInt64 = 16 << 20
    ) async throws(FetchError) -> FetchedBody {
        try await runner.run(["/bin/sh", "-c", script], maxBytes: maxBytes, keeper: keeper) { _ in }
    }

    @Test("goes to the keeper piece by piece, all of it and in its order; short output does not", .hangLimit)
    func kept() async throws {
        let keeper = ScriptedKeeper()
        let body = try await run("seq 1000000", keeper)
        let expected = (1...1_000_000).reduce(into: [UInt8]()) { $0 += Array("\($1)\n".utf8) }
        #expect(body.bytes == nil && body.size == expected.count)
        #expect(keeper.bodies.map { $0.bytes == expected } == [true])
        #expect(try #require(keeper.bodies.first).state.withLock { $0.pieces } > 20)
        #expect(try await run("echo one", keeper).bytes == Array("one\n".utf8))
        #expect(keeper.bodies.count == 1)
    }

    @Test("is discarded if the command fails or writes too much, or the keeper rejects it", .hangLimit)
    func failures() async throws {
        for (script, plan, words) in [
            ("seq 1000000; exit 3", ScriptedKeeper.Plan.nothing, "status 3"),
            ("seq 3000000", .nothing, "check.max-bytes"),
            ("seq 1000000", .isFull(after: 1 << 20), "the disk is full"),
            ("cat /dev/zero", .refusesToBegin, "the disk is full"),
        ] {
            let keeper = ScriptedKeeper(plan)
            let error = await #expect(throws: FetchError.self) { try await run(script, keeper) }
            guard case .failed(let failure) = error else { continue }
            #expect(failure.message.contains(words), "\(failure.message)")
            #expect(!keeper.bodies.contains { !$0.isDiscarded }, "\(script)")
        }
    }

    @Test("is there also when the command ends in the moment in which its end is begun to be awaited", .hangLimit)
    func endsAtOnce() async throws {
        // As the daemon's runs: a wait on the loop lets others of the loop run first.
        let runs = Task(executorPreference: running.loop) {
            for _ in 0..<100 {
                let body = try await runner.run(["/bin/echo", "one"], maxBytes: 1_024, keeper: ScriptedKeeper()) { _ in
                }
                #expect(body.bytes == Array("one\n".utf8))
            }
        }
        try await runs.value
    }
}
