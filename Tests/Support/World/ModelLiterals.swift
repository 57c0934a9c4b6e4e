package import FreshetModel

/// Values of the model as literals, so that tests stay short.

/// Microseconds since 1970.
extension WallTime: ExpressibleByIntegerLiteral {
    package static let max = WallTime(nanoseconds: .max)

    package init(integerLiteral microseconds: Int64) { self.init(microseconds: microseconds) }

    package static func + (time: WallTime, microseconds: Int64) -> WallTime {
        time.advanced(by: .microseconds(microseconds))
    }

    package static func - (time: WallTime, microseconds: Int64) -> WallTime {
        time.advanced(by: .microseconds(-microseconds))
    }
}

/// A digest that differs for different texts, and is not their SHA-256.
extension ContentDigest: ExpressibleByStringInterpolation {
    package init(stringLiteral text: String) { self.init(text: text) }

    package init(text: String) {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        var bytes: [UInt8] = []
        for round in 0..<UInt8(ContentDigest.byteCount) {
            for byte in Array(text.utf8) + [round] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            bytes.append(UInt8(truncatingIfNeeded: hash >> 32))
        }
        self = ContentDigest(bytes: bytes) ?? .zero
    }
}
