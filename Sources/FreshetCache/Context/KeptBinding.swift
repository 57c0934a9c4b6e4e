/// The binding of validators in memory. Bindings are hashes of 128 bits as hexadecimal digits; such a one is in the value
/// itself. A text on the heap, made during a run, would stay between blocks that the run frees.
enum KeptBinding: Hashable, Sendable {
    /// Lowercase hexadecimal digits without leading zeros.
    case hash(high: UInt64, low: UInt64)
    case text(String)

    init(_ text: String) {
        let digits = text.utf8
        guard (1...32).contains(digits.count), digits.first != UInt8(ascii: "0") else {
            self = .text(text)
            return
        }
        var (high, low): (UInt64, UInt64) = (0, 0)
        for digit in digits {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
            default:
                self = .text(text)
                return
            }
            (high, low) = (high << 4 | low >> 60, low << 4 | UInt64(value))
        }
        self = .hash(high: high, low: low)
    }
}
