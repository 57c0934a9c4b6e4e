/// The memory that one answer may take while programs work on it, in bytes.
package struct MemoryShare: Hashable, Sendable {
    /// The answer itself, in the daemon.
    package var input: UInt64
    /// The largest output of a program, in the daemon.
    package var output: UInt64
    /// The most memory of the helper process in which a program runs.
    package var helper: UInt64

    package init(input: UInt64, output: UInt64, helper: UInt64) {
        self.input = input
        self.output = output
        self.helper = helper
    }

    package var total: UInt64 { input + output + helper }

    /// An answer of at most this number of bytes needs no reservation, so that small pipelines never wait for large
    /// ones. The number of helpers that run at the same time is limited to that of the processors plus two.
    package static let smallInput: UInt64 = 256 << 10
    /// The share of a small answer.
    package static let small = MemoryShare(input: smallInput, output: 1 << 20, helper: leastHelper)
    /// The memory of a helper for a program and its state.
    static let leastHelper: UInt64 = 8 << 20
    /// The output of a program may be larger than its input by this number of bytes.
    static let slack: UInt64 = 1 << 20
    /// A helper takes four to five times the input where that has few and long values: the input, its values, and the
    /// output twice.
    static let factor: UInt64 = 5

    /// The size of a share.
    package enum Level: CaseIterable, Sendable {
        /// Enough for most answers of this size.
        case usual
        /// All memory of the budget.
        case all
    }

    /// The share of an answer; nil: the budget does not leave enough memory for a program.
    ///
    /// - Parameters:
    ///   - input: the answer's size in bytes.
    ///   - limit: the budget in bytes.
    package init?(for input: UInt64, _ level: Level, of limit: UInt64) {
        // Sizes of arrays and configured limits are small enough that their sums do not overflow.
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
