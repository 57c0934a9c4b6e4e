import CMeasure
import Dispatch
import Glibc

/// Compares Freshet's signals with other libraries, and prints tables and ratios without a verdict.
///
///     signals-bench [--seconds N] [TABLE…]
///
/// `--seconds` is the time for the samples of one table (1.5). Tables: fire deliver trigger merge debounce restart
/// accumulate pair dangers; all of them by default.
@main
struct SignalsBench {
    private static let tables: [(name: String, measure: @Sendable (Bench) -> Void)] = [
        ("fire", fireUnread), ("deliver", fireAndDeliver), ("trigger", activate), ("merge", mergeAndDeliver),
        ("debounce", debounceBurst), ("restart", restart), ("accumulate", accumulate), ("pair", pair),
    ]

    private static let budgets = [
        Budget(
            text: "firing, 1 subscriber / yielding to an AsyncStream", measured: "fire/Freshet",
            against: "fire/AsyncStream, unbounded", atMost: 1),
        Budget(
            text: "the same, a stream that keeps the newest 1", measured: "fire/Freshet",
            against: "fire/AsyncStream, newest 1", atMost: 1),
        Budget(
            text: "the same, until a waiting task has it", measured: "deliver/Freshet", against: "deliver/AsyncStream",
            atMost: 1),
        Budget(
            text: "firing, each of 1,000 subscribers / of 100", measured: "fan/Freshet 1,000",
            against: "fan/Freshet 100", divisor: 10, atMost: 1),
        Budget(
            text: "the same, until waiting tasks have it", measured: "deliverFan/Freshet 1,000",
            against: "deliverFan/Freshet 100", divisor: 10, atMost: 1),
        Budget(
            text: "activating one of 10,000 / of 1", measured: "trigger/Freshet, one of 10,000",
            against: "trigger/Freshet, of 1", atMost: 2),
        Budget(
            text: "activating each of 10,000 in turn / of 1", measured: "trigger/Freshet, each of 10,000 in turn",
            against: "trigger/Freshet, of 1", atMost: 2),
        Budget(
            text: "firing into a merge of 1,000 / a signal alone", measured: "merge/Freshet, 1,000 signals",
            against: "merge/Freshet, a signal alone", atMost: 1),
        Budget(
            text: "accumulateLatestMany of 10,000 / one copy", measured: "accumulate10000/Freshet",
            against: "accumulate10000/copying the array once", atMost: 1),
        Budget(
            text: "the same, the last array is kept", measured: "accumulate10000/Freshet, the last array is kept",
            against: "accumulate10000/copying the array once", atMost: 1),
        Budget(
            text: "the same, strings, the last array is kept",
            measured: "accumulate10000/Freshet, strings, the last array is kept",
            against: "accumulate10000/copying an array of strings once", atMost: 1),
    ]

    private static let dangers = "dangers"
    private static let defaultSeconds = 1.5
    /// The time limit of a whole run, in seconds, for a given time per table.
    private static let limit: UInt32 = 60

    static func main() {
        var seconds = defaultSeconds
        var wanted: [String] = []
        var arguments = CommandLine.arguments.dropFirst()
        while let argument = arguments.popFirst() {
            if argument.hasPrefix("--child=") {
                child(String(argument.dropFirst("--child=".count)))
            } else if argument == "--seconds", let value = arguments.popFirst().flatMap(Double.init), value > 0 {
                seconds = min(value, 60)
            } else if argument == dangers || tables.contains(where: { $0.name == argument }) {
                wanted.append(argument)
            } else {
                print(
                    "usage: signals-bench [--seconds N] [\((tables.map(\.name) + [dangers]).joined(separator: "|"))]…")
                exit(64)
            }
        }
        measure_deadline(limit * UInt32(max(1, (seconds / defaultSeconds).rounded(.up))))
        let bench = Bench(seconds: seconds)
        for table in tables where wanted.isEmpty || wanted.contains(table.name) {
            table.measure(bench)
        }
        printBudgets(budgets, bench.figures)
        if wanted.isEmpty || wanted.contains(dangers) { watchDangers() }
    }

    /// Runs a scenario that might crash, prints its number, and ends.
    private static func child(_ name: String) -> Never {
        guard let danger = Danger(rawValue: name) else { exit(64) }
        Task {
            print(await danger.run())
            exit(0)
        }
        dispatchMain()
    }
}
