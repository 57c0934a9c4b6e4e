/// The latest value of the other side of a `withLatestFrom`, and whether one can still come.
struct WithLatestFromStateMachine<Other> {
    private(set) var latest: Other?

    /// The other side delivered.
    ///
    /// - Returns: The value before it.
    mutating func otherDelivered(_ value: Other) -> Other? {
        let replaced = latest
        latest = value
        return replaced
    }

    /// Whether the end of the other side is that of the result: it had no value, so there will never be a pair.
    var endsWithOther: Bool { latest == nil }
}

extension WithLatestFromStateMachine: Sendable where Other: Sendable {}
