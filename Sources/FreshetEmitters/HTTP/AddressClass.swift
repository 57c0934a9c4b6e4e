import Glibc

/// The class of an address, by its reach: everybody, a network, a link, or this machine. A larger class is more
/// private.
///
/// A server on the Internet may redirect a request to an address that only this machine can reach: a service on
/// loopback, or a router. The answer would be published. So a redirect must not lead to a more private class than that
/// of the configured origin.
enum AddressClass: Int, Comparable, Sendable {
    case everybody
    /// RFC 1918, RFC 6598 and RFC 4193; and the addresses that the special-purpose registries (RFC 6890) list as not
    /// global.
    case network
    /// RFC 3927 and RFC 4291, 2.5.6.
    case link
    /// RFC 1122, 3.2.1.3 and RFC 4291, 2.5.3; and the unspecified address, which Linux treats as loopback.
    case machine

    /// - Parameter address: an IPv4 or IPv6 address as inet_ntop(3) writes it. Anything else, such as the path of a
    ///   socket, has the class ``machine``.
    init(of address: String) {
        var four = in_addr()
        var six = in6_addr()
        // Link-local addresses may have a zone ("%eth0").
        let text = String(address.prefix { $0 != "%" })
        if inet_pton(AF_INET, text, &four) == 1 {
            self = withUnsafeBytes(of: &four) { Self.ofFour($0[0...]) }
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            self = withUnsafeBytes(of: &six, Self.ofSix)
        } else {
            self = .machine
        }
    }

    /// - Parameter bytes: the address; further bytes are ignored.
    private static func ofFour(_ bytes: Slice<UnsafeRawBufferPointer>) -> AddressClass {
        let bytes = Array(bytes.prefix(4))
        guard bytes.count == 4 else { return .machine }
        switch (bytes[0], bytes[1], bytes[2]) {
        case (0, _, _), (127, _, _): return .machine
        case (169, 254, _): return .link
        case (10, _, _), (172, 16...31, _), (192, 168, _), (100, 64...127, _): return .network
        // Protocol assignments, benchmarks, multicast and reserved addresses.
        case (192, 0, 0), (198, 18...19, _), (224...255, _, _): return .network
        default: return .everybody
        }
    }

    private static func ofSix(_ bytes: UnsafeRawBufferPointer) -> AddressClass {
        let zeros = bytes.prefix { $0 == 0 }.count
        // ::, ::1 and the other half of the old "compatible" addresses; ::ffff:a.b.c.d; 64:ff9b::a.b.c.d (RFC 6052).
        let isMapped = zeros == 10 && bytes[10] == 0xFF && bytes[11] == 0xFF
        let isTranslated = bytes.starts(with: [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0])
        if isMapped || isTranslated { return ofFour(bytes[12...]) }
        if zeros >= 12 { return zeros >= 15 ? .machine : ofFour(bytes[12...]) }
        switch (bytes[0], bytes[1]) {
        // 6to4 (RFC 3056), and local-use translation (RFC 8215).
        case (0x20, 0x02): return ofFour(bytes[2...])
        case (0x00, 0x64) where bytes.starts(with: [0, 0x64, 0xFF, 0x9B, 0, 1]): return .network
        // Teredo contains the complement of the client's address (RFC 4380); multicast.
        case (0x20, 0x01) where bytes[2] == 0 && bytes[3] == 0: return .network
        case (0xFF, _): return .network
        case (0xFE, 0x80...0xBF): return .link
        // Site-local addresses are deprecated (RFC 3879), but not public.
        case (0xFE, 0xC0...0xFF), (0xFC...0xFD, _): return .network
        default: return .everybody
        }
    }

    /// The bytes of an address: four bytes of an IPv4 address, also of an IPv4 address inside an IPv6 address
    /// (::ffff:a.b.c.d, 64:ff9b::/96 and 6to4); sixteen bytes of another IPv6 address. Nil if the text is not an
    /// address.
    static func bytes(of address: String) -> [UInt8]? {
        var four = in_addr()
        var six = in6_addr()
        let text = String(address.prefix { $0 != "%" })
        if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: &four) { Array($0) } }
        guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: &six) { Array($0) }
        let prefixes: [[UInt8]] = [
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0],
        ]
        if prefixes.contains(where: bytes.starts) { return Array(bytes[12...]) }
        return bytes.starts(with: [0x20, 0x02]) ? Array(bytes[2..<6]) : bytes
    }

    static func < (left: AddressClass, right: AddressClass) -> Bool { left.rawValue < right.rawValue }

    var words: String {
        switch self {
        case .everybody: "a public address"
        case .network: "an address of a private network"
        case .link: "a link-local address"
        case .machine: "an address of this machine"
        }
    }
}
