import CMeasure

/// One of those that are compared in a table.
struct Subject {
    let name: String
    /// What is to be delivered, if that can be counted.
    var delivered: Delivered?
    /// Does the operation so many times and returns how many nanoseconds that took; nil if it did not end in time.
    let run: (Int) -> UInt64?
    /// Ends what it has started.
    var finish: () -> Void = {}

    /// - Parameter run: Does the operation so many times, on this thread.
    init(_ name: String, run: @escaping (Int) -> Void) {
        self.name = name
        self.run = { operations in
            let start = measure_now()
            run(operations)
            return measure_now() - start
        }
    }

    /// - Parameter run: Does the operation so many times, on the global executor. The time until it begins there, and
    ///   until this thread knows of its end, is not counted.
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

/// What a subject has delivered, and what it should have.
struct Delivered {
    let counter: Counter
    var perOperation = 0
    /// However many operations the run has.
    var perRun = 0
}

/// What was found about a subject.
struct Figures {
    var operations = 1
    var performed = 0
    var runs = 0
    /// Nanoseconds for an operation.
    var samples: [Double] = []
    var allocations = 0.0
    var failure: String?

    var median: Double { samples.isEmpty ? .nan : samples.sorted()[samples.count / 2] }
    var least: Double { samples.min() ?? .nan }
}

/// Measures subjects in turns and prints tables.
final class Bench {
    /// For the samples of one table, in seconds; a table takes a third more to warm up.
    private let seconds: Double
    private(set) var figures: [String: Figures] = [:]

    private static let leastRounds = 5
    private static let mostRounds = 401
    /// A sample has so many operations that it takes about this long, in nanoseconds.
    private static let sampleTime: UInt64 = 1_000_000
    private static let mostOperations = 1 << 16
    private static let countedOperations = 256

    init(seconds: Double) {
        self.seconds = seconds
    }

    /// Measures the subjects, each once in every round, and prints their table. Ratios are to the first.
    ///
    /// - Parameters:
    ///   - key: What the figures of this table are named after, as in ``figures``: `key/subject`.
    ///   - missing: Who has no row, and why.
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
            // A first operation may be a slow one, so not at once to where its time would lead.
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
