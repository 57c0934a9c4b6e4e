import FreshetTestKit
import Glibc
import TestSupport
import Testing

/// Whatever happens to a machine in whatever order, the witness finds no error, and when all is well again every
/// pipeline is idle with a fresh copy.
///
/// A course is its seed: the same seed gives the same course. The tests use the same seeds each time, so that only a
/// change of the code can make them fail. `make soak` searches for rare errors with new seeds. In the environment:
///
/// - `FRESHET_SEEDS=7-7` repeats one seed, `FRESHET_SEEDS=1-50000` tries many;
/// - `FRESHET_SCHEDULES=50000` tries 50,000 new seeds and prints the first and the last of them;
/// - `FRESHET_DIGESTS=FILE` appends the digest of each course to a file.
@Suite("In any course of a machine's days", .ownThread)
struct CourseTests {
    /// The number of seeds by default.
    static let schedules: UInt64 = 2000

    /// The seeds that this run tries.
    private static var seeds: ClosedRange<UInt64> {
        if let seeds = HistoryDigest.seeds { return seeds }
        guard let count = getenv("FRESHET_SCHEDULES").flatMap({ UInt64(String(cString: $0)) }) else {
            return 1...schedules
        }
        let first = UInt64.random(in: 1...1_000_000) * 100_000
        return first...first + max(1, count) - 1
    }

    @Test("signals are answered, bursts are cheap, runs do not overlap, the copy is never lost, nothing is left over")
    func holds() throws {
        let seeds = Self.seeds
        print("# simulation: FRESHET_SEEDS=\(seeds.lowerBound)-\(seeds.upperBound)")
        var runs = 0
        var pageRuns = 0
        var failed = 0
        for seed in seeds {
            var course = Course(seed)
            do { try course.run() } catch { course.machine.witness.expect(false, "\(error)") }
            let witness = course.machine.witness
            witness.trace.store("course", seed)
            runs += witness.runs
            pageRuns += witness.pageRuns
            guard !witness.errors.isEmpty else { continue }
            failed += 1
            Issue.record(
                """
                FRESHET_SEEDS=\(seed)-\(seed) Scripts/test only CourseTests
                \(witness.errors.joined(separator: "\n"))
                """)
            // The first failures say most.
            if failed == 5 { break }
        }
        print("# simulation: \(seeds.count) courses, \(runs) runs, \(pageRuns) further pages")
        if seeds.count >= Self.schedules { #expect(pageRuns > 0) }
    }

    /// Seeds in which the witness once reported an error:
    /// - after rejected content, a run found no network, and a reload planned the next check;
    /// - a person's request joined a run, which another network replaced: before `min-interval` was over, and while the
    ///   connection was metered.
    @Test(
        "the witness finds no error in earlier findings",
        arguments: [
            15_264_201_018, 15_264_201_787, 15_264_208_098,
        ] as [UInt64])
    func stillHolds(_ seed: UInt64) throws {
        var course = Course(seed)
        try course.run()
        #expect(course.machine.witness.errors.isEmpty)
    }

    @Test("the same seed gives the same course")
    func replay() throws {
        for seed in 1...20 as ClosedRange<UInt64> {
            let ways = try (0..<2).map { _ in
                var course = Course(seed)
                try course.run()
                return course.machine.witness.trace.number
            }
            #expect(ways[0] == ways[1], "seed \(seed)")
        }
        // In another process too: a collection without an order must not influence the course.
        var known = Course(1)
        try known.run()
        print("# simulation: seed 1 goes \(known.machine.witness.trace.number)")
    }

    @Test("the witness detects what is wrong", arguments: Flaw.allCases)
    func sees(_ flaw: Flaw) throws {
        var other: Set<String> = []
        for seed in 1...2000 as ClosedRange<UInt64> {
            var course = Course(seed, flaw: flaw)
            do { try course.run() } catch { course.machine.witness.expect(false, "\(error)") }
            let errors = course.machine.witness.errors
            if errors.contains(where: { error in flaw.symptoms.contains { error.contains($0) } }) { return }
            other.formUnion(errors)
        }
        Issue.record("not detected; detected instead: \(other.sorted().prefix(5))")
    }
}
