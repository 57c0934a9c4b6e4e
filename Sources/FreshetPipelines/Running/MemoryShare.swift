/// The memory that one answer may take while programs work on it, in bytes.
package struct MemoryShare: Hashable, Sendable {
    /// The answer itself, in the daemon.
    package var input: UInt64
    /// The most that a program puts out, in the daemon.
    package var output: UInt64
    /// The most that the helper takes in which a program runs.
    package var helper: UInt64

    package init(input: UInt64, output: UInt64, helper: UInt64) {
        self.input = input
        self.output = output
        self.helper = helper
    }

    package var total: UInt64 { input + output + helper }

    /// What has at most so many bytes needs no reservation, so that small pipelines never wait for large ones. Only as many
    /// helpers run at once as there are processors, and two more.
    package static let smallInput: UInt64 = 256 << 10
    /// The share of such an answer.
    package static let small = MemoryShare(input: smallInput, output: 1 << 20, helper: leastHelper)
    /// A helper takes that much for a program and its state.
    static let leastHelper: UInt64 = 8 << 20
    /// What a program puts out may have so much more than its input.
    static let slack: UInt64 = 1 << 20
    /// A helper takes four to five times the input where that has few and long values: the input, its values, and the
    /// output twice.
    static let factor: UInt64 = 5

    /// How much an answer is given.
    package enum Level: CaseIterable, Sendable {
        /// What most answers of its size take.
        case usual
        /// All that there is.
        case all
    }

    /// The share of an answer; nil: nothing useful is left beside it.
    ///
    /// - Parameters:
    ///   - input: its size in bytes.
    ///   - limit: the most that there is.
    package init?(for input: UInt64, _ level: Level, of limit: UInt64) {
        // Sizes are those of arrays, or limits of the configuration: their sums do not overflow.
        let least = input + Self.slack
        guard input < limit, least < limit - input, Self.leastHelper <= limit - input - least else { return nil }
        if level == .usual {
            let usual = MemoryShare(input: input, output: least, helper: Self.leastHelper + Self.factor * input)
            if usual.total <= limit {
                self = usual
                return
            }
        }
        let rest = limit - input
        let output = max(least, rest / 4)
        self.init(input: input, output: output, helper: rest - output)
        if helper < Self.leastHelper { (self.output, helper) = (least, rest - least) }
    }
}
