import FreshetEventLoop
import FreshetHelper
import FreshetPipelines
import Glibc
import TestSupport
import Testing

@testable import FreshetEmitters

/// With real helper processes.
@Suite("The memory of jq helpers")
struct JQMemoryTests {
    let running: RunningLoop
    let budget = MemoryBudget(limit: 128 << 20)
    let transformer: JQTransformer

    init() throws {
        running = try RunningLoop()
        transformer = JQTransformer(
            running.loop, workers: WorkerPool(), helper: try JQTransformer.realHelper(), memory: budget)
    }

    /// A JSON text of `size` MiB.
    private func text(_ size: Int) -> [UInt8] {
        Array("[\"".utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: size << 20) + Array("\"]".utf8)
    }

    @Test("a small request uses no memory of the budget, and its helper is kept", .hangLimit)
    func small() async throws {
        let all = try await budget.reserve(for: 0, .all)
        #expect(try await transformer.transform(Array("[1]".utf8), by: ".[0]") == Array("1\n".utf8))
        #expect(await transformer.idleHelpers == 1)
        all.release()
    }

    @Test("a large request waits for its share and returns it, and its helper ends", .hangLimit)
    func large() async throws {
        let all = try await budget.reserve(for: 0, .all)
        async let output = transformer.transform(text(4), by: ".[0] | length")
        #expect(await eventually { budget.counts.waiting == 1 })
        #expect(await transformer.runningHelpers == 0)
        all.release()
        #expect(try await output == Array("\(4 << 20)\n".utf8))
        #expect(budget.counts == (0, 0))
        #expect(await transformer.idleHelpers == 0)
    }

    @Test("a program that needs more memory than its share runs again with more memory", .hangLimit)
    func more() async throws {
        // 16 MiB of numbers: more memory than the helper of a small request has.
        let program = "[range(1000000)] | length"
        #expect(try await transformer.transform(Array("null".utf8), by: program) == Array("1000000\n".utf8))
        // An output that is longer than the output of a small request may be.
        let output = try await transformer.transform(Array("null".utf8), by: "[range(300000)]")
        #expect(output.count > 1 << 20)
        #expect(budget.counts == (0, 0))
    }

    @Test("a program that needs more memory than the budget fails, and the failure names the remedy", .hangLimit)
    func tooMuch() async throws {
        let error = await #expect(throws: FetchError.self) {
            try await transformer.transform(Array("null".utf8), by: "[range(1e9)] | length")
        }
        guard case .failed(let failure) = error else { return }
        #expect(failure.message.contains("raise memory.max in freshet.yaml"), "\(failure.message)")
        #expect(!failure.lacksMemory)
        #expect(budget.counts == (0, 0))
    }

    @Test("requests with a reservation use its memory and do not wait for memory", .hangLimit)
    func reserved() async throws {
        let reservation = try await budget.reserve(for: 4 << 20, .all)
        let share = transformer.share(of: 1).using(reservation)
        #expect(try await share.transform(text(4), by: ".[0] | length") == Array("\(4 << 20)\n".utf8))
        #expect(budget.counts.taken == reservation.share.total)
        reservation.release()
    }

    @Test("all of many concurrent large requests are answered, and never use more memory than the limit", .hangLimit)
    func many() async throws {
        let text = text(3)
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for pipeline in 1...12 as ClosedRange<UInt64> {
                let share = transformer.share(of: pipeline)
                group.addTask { try await share.transform(text, by: ".[0] | length") }
            }
            for try await output in group {
                #expect(output == Array("\(3 << 20)\n".utf8))
                #expect(budget.counts.taken <= 128 << 20)
            }
        }
        #expect(budget.counts == (0, 0))
    }
}
