import FreshetSignals
import TestSupport
import Testing

@testable import FreshetPipelines

@Suite("The memory budget of all pipelines")
struct MemoryBudgetTests {
    @Test(
        "random courses: the limit is never exceeded, the order is kept, and all reservations are granted in the end",
        .hangLimit)
    func courses() {
        for seed in 0..<200 {
            var chance = SplitMix(UInt64(seed))
            var machine = MemoryBudgetMachine(limit: 1_000)
            var held: [UInt64: UInt64] = [:]
            var asked: [UInt64: UInt64] = [:]
            var servedLast: UInt64 = 0
            func serve(_ tickets: [UInt64]) {
                for ticket in tickets {
                    #expect(ticket > servedLast, "first come, first served")
                    servedLast = ticket
                    held[ticket] = asked.removeValue(forKey: ticket)
                }
                let sum = held.values.reduce(0, +)
                #expect(machine.taken == sum && sum <= 1_000)
                // A waiting reservation waits for others that are granted.
                #expect(asked.isEmpty || !held.isEmpty)
            }
            for _ in 0..<300 {
                switch chance.next() % 5 {
                case 0, 1:
                    let bytes = 1 + chance.next() % 1_000
                    let (ticket, isGranted) = machine.request(bytes)
                    asked[ticket] = bytes
                    serve(isGranted ? [ticket] : [])
                case 2:
                    // A waiting reservation is cancelled.
                    guard let ticket = asked.keys.sorted().first(where: { _ in chance.next() % 3 == 0 }) else {
                        continue
                    }
                    asked[ticket] = nil
                    serve(machine.release(ticket))
                default:
                    guard let ticket = held.keys.sorted().first else { continue }
                    held[ticket] = nil
                    serve(machine.release(ticket))
                    #expect(machine.release(ticket) == [], "a second time has no effect")
                }
            }
            while let ticket = held.keys.sorted().first {
                held[ticket] = nil
                serve(machine.release(ticket))
            }
            #expect(asked.isEmpty && machine.taken == 0 && machine.waitingCount == 0)
        }
    }

    @Test("after the limit was lowered, a reservation above it is granted alone")
    func lowered() {
        var machine = MemoryBudgetMachine(limit: 1_000)
        let first = machine.request(600)
        let second = machine.request(500)
        #expect(first.isGranted && !second.isGranted)
        #expect(machine.change(limit: 400) == [])
        #expect(machine.release(first.ticket) == [second.ticket])
        #expect(!machine.request(1).isGranted)
    }

    @Test("a raised limit is granted immediately")
    func raised() {
        var machine = MemoryBudgetMachine(limit: 100)
        _ = machine.request(80)
        let second = machine.request(80)
        #expect(machine.change(limit: 200) == [second.ticket])
    }

    @Test("a reservation that is cancelled while it waits delays no other and keeps nothing", .hangLimit)
    func cancelled() async throws {
        let budget = MemoryBudget(limit: 64 << 20)
        let first = try await budget.reserve(for: 1 << 20, .all)
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                do throws(FetchError) {
                    _ = try await budget.reserve(for: 1 << 20, .usual)
                    return false
                } catch {
                    return error == .cancelled
                }
            }
            #expect(await eventually { budget.counts.waiting == 1 })
            group.cancelAll()
            #expect(await group.next() == true)
        }
        #expect(budget.counts.waiting == 0)
        first.release()
        first.release()
        #expect(budget.counts.taken == 0)
    }

    @Test("a dropped reservation is released")
    func dropped() async throws {
        let budget = MemoryBudget(limit: 64 << 20)
        do {
            let reservation = try await budget.reserve(for: 1 << 20, .usual)
            #expect(budget.counts.taken == reservation.share.total)
        }
        #expect(budget.counts.taken == 0)
    }

    @Test("a share holds the answer, an output of its size and a helper, and never exceeds the limit")
    func shares() throws {
        let mebibyte: UInt64 = 1 << 20
        let usual = try #require(MemoryShare(for: 57 * mebibyte, .usual, of: 480 * mebibyte))
        #expect(usual == MemoryShare(input: 57 * mebibyte, output: 58 * mebibyte, helper: 293 * mebibyte))
        for limit in [32, 64, 480] as [UInt64] {
            for input in 0...limit {
                for level in MemoryShare.Level.allCases {
                    guard let share = MemoryShare(for: input * mebibyte, level, of: limit * mebibyte) else {
                        #expect(2 * input + 9 > limit, "\(input) of \(limit)")
                        continue
                    }
                    #expect(share.total <= limit * mebibyte && share.output > share.input)
                    #expect(share.helper >= 8 * mebibyte)
                    #expect(level == .usual || share.total == limit * mebibyte)
                }
            }
        }
    }

    @Test("an answer that can never fit fails immediately, and the failure names sizes and remedies")
    func tooLarge() async throws {
        let budget = MemoryBudget(limit: 64 << 20)
        let failure = await #expect(throws: FetchError.self) { try await budget.reserve(for: 60 << 20, .usual) }
        guard case .failed(let failure) = failure else { return }
        #expect(
            failure.message
                == "the content has 60 MiB, too much for a program to work on with 64 MiB of memory; raise memory.max in "
                + "freshet.yaml, or lower check.max-bytes to reject such content")
        #expect(budget.counts == (0, 0))
    }
}

/// Random numbers from a seed.
private struct SplitMix {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
