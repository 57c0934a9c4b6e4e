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
        _ script: String, _ bodyStore: ScriptedBodyStore, maxBytes: UInt64 = 16 << 20
    ) async throws(FetchError) -> FetchedBody {
        try await runner.run(["/bin/sh", "-c", script], maxBytes: maxBytes, bodyStore: bodyStore) { _ in }
    }

    @Test("long output is written to the body store in pieces and in order; short output is not", .hangLimit)
    func kept() async throws {
        let bodyStore = ScriptedBodyStore()
        let body = try await run("seq 1000000", bodyStore)
        let expected = (1...1_000_000).reduce(into: [UInt8]()) { $0 += Array("\($1)\n".utf8) }
        #expect(body.bytes == nil && body.size == expected.count)
        #expect(bodyStore.bodies.map { $0.bytes == expected } == [true])
        #expect(try #require(bodyStore.bodies.first).state.withLock { $0.pieces } > 20)
        #expect(try await run("echo one", bodyStore).bytes == Array("one\n".utf8))
        #expect(bodyStore.bodies.count == 1)
    }

    @Test("output is discarded if the command fails, the output is too long or the body store fails", .hangLimit)
    func failures() async throws {
        for (script, plan, words) in [
            ("seq 1000000; exit 3", ScriptedBodyStore.Plan.nothing, "status 3"),
            ("seq 3000000", .nothing, "check.max-bytes"),
            ("seq 1000000", .isFull(after: 1 << 20), "the disk is full"),
            ("cat /dev/zero", .refusesToBegin, "the disk is full"),
        ] {
            let bodyStore = ScriptedBodyStore(plan)
            let error = await #expect(throws: FetchError.self) { try await run(script, bodyStore) }
            guard case .failed(let failure) = error else { continue }
            #expect(failure.message.contains(words), "\(failure.message)")
            #expect(!bodyStore.bodies.contains { !$0.isDiscarded }, "\(script)")
        }
    }

    @Test("output is complete if the command ends just when the wait for its end begins", .hangLimit)
    func endsImmediately() async throws {
        // On the loop as in the daemon: a suspension lets other tasks of the loop run first.
        let runs = Task(executorPreference: running.loop) {
            for _ in 0..<100 {
                let body = try await runner.run(["/bin/echo", "one"], maxBytes: 1_024, bodyStore: ScriptedBodyStore()) {
                    _ in
                }
                #expect(body.bytes == Array("one\n".utf8))
            }
        }
        try await runs.value
    }
}
