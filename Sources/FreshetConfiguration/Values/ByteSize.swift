/// Sizes in bytes with IEC units, as systemd writes them: `64M` and `64MiB` are 64 · 2²⁰ bytes.
package enum ByteSize {
    /// The largest size that can be configured: 2⁶³ − 1, so that a size fits a signed 64-bit offset.
    package static let largest = UInt64(Int64.max)

    private static let prefixes = Array("KMGTPE")

    static func read(_ text: String) throws(ValueError) -> UInt64 {
        var rest = text[...]
        let number = try DecimalNumber.read(from: &rest, ofKind: "a size such as 64K or 64M", in: text)
        let unit = String(rest.drop { $0 == " " })
        guard let size = number.multiplied(by: try factor(of: unit)), size <= largest else {
            throw ValueError("is larger than 8 EiB")
        }
        guard number.billionths == 0 || !unit.isEmpty else { throw ValueError("has to be a whole number of bytes") }
        return size
    }

    private static func factor(of unit: String) throws(ValueError) -> UInt64 {
        if unit.isEmpty || unit == "B" { return 1 }
        guard let first = unit.first, let index = prefixes.firstIndex(of: Character(first.uppercased())) else {
            throw ValueError(
                "has the unknown size unit \(unit.quoted)",
                remedy: "the units are K, M, G and T, or KiB, MiB, GiB, TiB")
        }
        let letter = prefixes[index]
        guard unit == "\(letter)" || unit == "\(letter)iB" else {
            // MB is 10⁶ to some and 2²⁰ to others.
            throw ValueError(
                "has the unknown size unit \(unit.quoted)",
                remedy: "write \(letter) or \(letter)iB, which is 2^\((index + 1) * 10) bytes")
        }
        return 1 << UInt64((index + 1) * 10)
    }

    /// A size in the notation of the configuration, in the largest unit without a fraction: `64M`, `1500`.
    package static func text(_ size: UInt64) -> String {
        for (index, prefix) in prefixes.enumerated().reversed() {
            let unit: UInt64 = 1 << UInt64((index + 1) * 10)
            if size >= unit, size % unit == 0 { return "\(size / unit)\(prefix)" }
        }
        return String(size)
    }
}

extension ValueKind where Value == UInt64 {
    static func size(_ range: ClosedRange<UInt64>) -> ValueKind {
        ValueKind(name: "a size such as 64K or 64M") { scalar throws(ValueError) in
            let size = try ByteSize.read(scalar.text)
            guard range.contains(size) else {
                throw size < range.lowerBound
                    ? ValueError("has to be at least \(ByteSize.text(range.lowerBound))")
                    : ValueError("has to be at most \(ByteSize.text(range.upperBound))")
            }
            return size
        }
    }
}
