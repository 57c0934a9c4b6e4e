import Glibc

/// An IPv4 or IPv6 address.
public struct IPAddress: Hashable, Sendable, LosslessStringConvertible {
    /// The protocol's version.
    public enum Family: UInt8, Hashable, Sendable, CaseIterable {
        case v4 = 4
        case v6 = 6
    }

    public let family: Family
    private let high: UInt64
    private let low: UInt64

    /// Makes an address from 4 or 16 bytes in network order; nil for any other count.
    public init?(bytes: some Collection<UInt8>) {
        switch bytes.count {
        case 4:
            family = .v4
            high = 0
            low = bytes.reduce(0) { $0 << 8 | UInt64($1) }
        case 16:
            family = .v6
            high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
            low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
        default: return nil
        }
    }

    /// Parses an address: `192.0.2.1`, `2001:db8::1`. An IPv4 address in IPv6 notation (`::ffff:192.0.2.1`) becomes an
    /// IPv4 address.
    ///
    /// Brackets and zones (`fe80::1%eth0`) are not accepted: a zone is a link of this machine, not part of an address.
    public init?(_ text: String) {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            self.init(bytes: bytes[..<4])
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xff && bytes[11] == 0xff
            self.init(bytes: isMapped ? bytes[12...] : bytes[...])
        } else {
            return nil
        }
    }

    /// 4 or 16 bytes in network order.
    public var bytes: [UInt8] {
        switch family {
        case .v4: (0..<4).map { UInt8(truncatingIfNeeded: low >> (24 - 8 * $0)) }
        case .v6: [high, low].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) } }
        }
    }

    /// The number of ``bytes``.
    var byteCount: Int { family == .v4 ? 4 : 16 }

    /// Appends ``bytes`` to an array.
    func append(to bytes: inout [UInt8]) {
        switch family {
        case .v4: withUnsafeBytes(of: UInt32(truncatingIfNeeded: low).bigEndian) { bytes.append(contentsOf: $0) }
        case .v6:
            withUnsafeBytes(of: high.bigEndian) { bytes.append(contentsOf: $0) }
            withUnsafeBytes(of: low.bigEndian) { bytes.append(contentsOf: $0) }
        }
    }

    /// Whether it is valid on its own link only: fe80::/10 (RFC 4291, 2.5.6).
    var isIPv6LinkLocal: Bool { family == .v6 && high >> 54 == 0xfe80 >> 6 }

    /// Whether it is a loopback address: 127.0.0.0/8 (RFC 1122, 3.2.1.3), ::1 (RFC 4291, 2.5.3).
    var isLoopback: Bool {
        switch family {
        case .v4: low >> 24 == 127
        case .v6: high == 0 && low == 1
        }
    }

    /// The address in the notation of RFC 5952.
    public var description: String {
        switch family {
        case .v4: dottedDecimal
        case .v6: notation
        }
    }

    /// An IPv4 address in dotted decimal notation. Texts of facts contain it and are made before each request that a
    /// change of the network causes, so it must not be slow, as inet_ntop(3) is.
    private var dottedDecimal: String {
        String(unsafeUninitializedCapacity: 15) { text in
            var end = 0
            for shift in [24, 16, 8, 0] as [UInt64] {
                let byte = UInt8(truncatingIfNeeded: low >> shift)
                if end > 0 {
                    text[end] = UInt8(ascii: ".")
                    end += 1
                }
                for unit in [100, 10, 1] as [UInt8] where byte >= unit || unit == 1 {
                    text[end] = UInt8(ascii: "0") + byte / unit % 10
                    end += 1
                }
            }
            return end
        }
    }

    /// An IPv6 address as inet_ntop(3) writes it.
    private var notation: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let result = inet_ntop(AF_INET6, bytes, &text, socklen_t(text.count))
        return result == nil
            ? "?" : String(decoding: text.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    }
}
