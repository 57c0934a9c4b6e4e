import FreshetControl
import FreshetEventLoop
import FreshetModel
import Testing

@testable import FreshetDaemon

@Suite("Slow jobs in log and metrics")
struct SlowJobTableTests {
    private let start = BootInstant.now

    private func job(_ name: String, _ milliseconds: Int) -> SlowJob {
        SlowJob(name: name, processorTime: .milliseconds(milliseconds))
    }

    @Test("one job of each name is logged per minute with the count, and another one if it is twice as slow")
    func log() {
        var table = SlowJobTable()
        #expect(table.record(job("a", 25), at: start) == 1)
        #expect(table.record(job("a", 49), at: start) == nil)
        #expect(table.record(job("b", 25), at: start) == 1)
        #expect(table.record(job("a", 50), at: start + .seconds(1)) == 3)
        #expect(table.record(job("a", 99), at: start + .seconds(60)) == nil)
        #expect(table.record(job("a", 20), at: start + .seconds(61)) == 5)
    }

    @Test("all slow jobs are counted by name, with the longest time")
    func status() {
        var table = SlowJobTable()
        for time in [25, 40, 30] { _ = table.record(job("b", time), at: start) }
        _ = table.record(job("a", 20), at: start)
        #expect(
            table.status == [
                SlowJobStatus(job: "a", count: 1, longestUSec: 20_000),
                SlowJobStatus(job: "b", count: 3, longestUSec: 40_000),
            ])
    }

    @Test("the number of names is limited")
    func bound() {
        var table = SlowJobTable()
        for number in 0..<1_000 { _ = table.record(job("\(number)", 25), at: start) }
        #expect(table.status.count == SlowJobTable.nameLimit)
    }
}
