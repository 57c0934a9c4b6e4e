/// A small random number generator for delays (SplitMix64), not for secrets. Equal seeds give equal sequences, for
/// tests.
package struct Jitter: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mix(state)
    }

    /// A uniformly distributed duration from zero up to the limit.
    mutating func duration(upTo limit: Duration) -> Duration {
        limit * Self.fraction(next())
    }

    /// Spreads the bits of a number.
    static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number in 0 ..< 1 from the upper 53 bits.
    static func fraction(_ value: UInt64) -> Double {
        Double(value >> 11) * 0x1p-53
    }
}
