/// The latest value of the other sequence of a `withLatestFrom`.
struct WithLatestFromStateMachine<Other> {
    private(set) var latest: Other?

    /// The other sequence delivered a value.
    ///
    /// - Returns: The previous value.
    mutating func otherDelivered(_ value: Other) -> Other? {
        let replaced = latest
        latest = value
        return replaced
    }

    /// Whether the end of the other sequence ends the result: it had no value, so there will never be a pair.
    var endsWithOther: Bool { latest == nil }
}

extension WithLatestFromStateMachine: Sendable where Other: Sendable {}
