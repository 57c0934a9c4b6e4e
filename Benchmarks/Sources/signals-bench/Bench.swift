import CMeasure

/// One row of a table of comparisons.
struct Subject {
    let name: String
    /// The expected number of deliveries, if they can be counted.
    var delivered: Delivered?
    /// Runs the operation this many times and returns the time in nanoseconds; nil if it did not end in time.
    let run: (Int) -> UInt64?
    /// Releases everything that the subject has started.
    var finish: () -> Void = {}

    /// - Parameter run: Runs the operation this many times, on this thread.
    init(_ name: String, run: @escaping (Int) -> Void) {
        self.name = name
        self.run = { operations in
            let start = measure_now()
            run(operations)
            return measure_now() - start
        }
    }

    /// - Parameter run: Runs the operation this many times, on the global executor. The time until it begins there, and
    ///   until this thread knows of its end, does not count.
    init(_ name: String, onPool run: @escaping @Sendable (Int) async -> Void) {
        self.name = name
        self.run = { operations in
            let taken = Held<UInt64>(0)
            let isDone = runOnPool {
                let start = measure_now()
                await run(operations)
                taken.value = measure_now() - start
            }
            return isDone ? taken.value : nil
        }
    }
}

/// The actual and the expected number of deliveries.
struct Delivered {
    let counter: Counter
    var perOperation = 0
    /// The expected number does not depend on the number of operations.
    var perRun = 0
}

/// The results of a subject.
struct Figures {
    var operations = 1
    var performed = 0
    var runs = 0
    /// Nanoseconds for one operation.
    var samples: [Double] = []
    var allocations = 0.0
    var failure: String?

    var median: Double { samples.isEmpty ? .nan : samples.sorted()[samples.count / 2] }
    var least: Double { samples.min() ?? .nan }
}

/// Measures subjects in turn and prints tables.
final class Bench {
    /// The time for the samples of one table, in seconds; warming up takes a third more.
    private let seconds: Double
    private(set) var figures: [String: Figures] = [:]

    private static let leastRounds = 5
    private static let mostRounds = 401
    /// The target duration of a sample, in nanoseconds; it determines the number of operations.
    private static let sampleTime: UInt64 = 1_000_000
    private static let mostOperations = 1 << 16
    private static let countedOperations = 256

    init(seconds: Double) {
        self.seconds = seconds
    }

    /// Measures the subjects, each once in every round, and prints their table. Ratios are to the first subject.
    ///
    /// - Parameters:
    ///   - key: The prefix of this table's keys in ``figures``: `key/subject`.
    ///   - missing: The libraries without a row, with the reason.
    func table(_ key: String, _ title: String, _ subjects: [Subject], missing: [String] = []) {
        var found = subjects.map(warmUp)
        let start = measure_now()
        var round = 0
        while round < Self.mostRounds {
            if round >= Self.leastRounds, Double(measure_now() - start) > seconds * 1e9 { break }
            for turn in subjects.indices {
                let index = (turn + round) % subjects.count
                sample(subjects[index], &found[index])
            }
            round += 1
        }
        for index in subjects.indices {
            count(subjects[index], &found[index])
            check(subjects[index], &found[index])
            subjects[index].finish()
            figures[key + "/" + subjects[index].name] = found[index]
        }
        printTable(title, zip(subjects, found).map { ($0.name, $1) }, missing: missing)
    }

    private func warmUp(_ subject: Subject) -> Figures {
        var found = Figures()
        while found.failure == nil {
            let time = time(subject, found.operations, &found)
            if time >= Self.sampleTime || found.operations >= Self.mostOperations { break }
            // The first operation may be slow, so approach the target duration in steps.
            let wanted = Double(Self.sampleTime) / Double(max(time, 1))
            found.operations = min(Self.mostOperations, Int(Double(found.operations) * min(max(wanted, 1.5), 8)) + 1)
        }
        return found
    }

    private func sample(_ subject: Subject, _ found: inout Figures) {
        guard found.failure == nil else { return }
        let time = time(subject, found.operations, &found)
        if found.failure == nil { found.samples.append(Double(time) / Double(found.operations)) }
    }

    private func time(_ subject: Subject, _ operations: Int, _ found: inout Figures) -> UInt64 {
        guard let time = subject.run(operations) else {
            found.failure = "hung"
            return 0
        }
        found.performed += operations
        found.runs += 1
        return time
    }

    private func count(_ subject: Subject, _ found: inout Figures) {
        guard found.failure == nil else { return }
        measure_count_begin()
        _ = time(subject, Self.countedOperations, &found)
        found.allocations = Double(measure_count_end()) / Double(Self.countedOperations)
    }

    private func check(_ subject: Subject, _ found: inout Figures) {
        guard found.failure == nil, let delivered = subject.delivered else { return }
        let wanted = found.performed * delivered.perOperation + found.runs * delivered.perRun
        let value = delivered.counter.value
        if value != wanted { found.failure = "delivered \(value) of \(wanted)" }
    }
}
