import FreshetTestKit
import Testing

@testable import FreshetSignals

@Suite("One iteration of accumulateLatestMany and its branches")
struct AccumulateLatestManyTests {
    @Test(
        "100,000 branches work, also if they end in the order opposite to their beginning",
        arguments: [10_000, 100_000])
    func manyBranches(_ count: Int) async {
        let gate = CurrentValue(count)
        let started = ContinuousClock.now
        let sequence = accumulateLatestMany((0..<count).map { number in Emitter.once { number } })
        var arrays = 0
        for await array in sequence {
            arrays += 1
            #expect(array.count == count)
        }
        #expect(arrays == 1)
        print("once", count, ContinuousClock.now - started)
        _ = gate
    }
}
