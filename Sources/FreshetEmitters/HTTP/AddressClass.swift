import Glibc

/// Who can reach an address: everybody, a network, a link, or this machine. A larger class is more private.
///
/// A server in the Internet may redirect a request to where only this machine can send one: to a service on loopback, or
/// to a router. What it answers would be published. So no redirect leads to a more private class than the configured
/// origin's.
enum AddressClass: Int, Comparable, Sendable {
    case everybody
    /// RFC 1918, RFC 6598 and RFC 4193; and what the registries of special addresses (RFC 6890) call not global.
    case network
    /// RFC 3927 and RFC 4291, 2.5.6.
    case link
    /// RFC 1122, 3.2.1.3 and RFC 4291, 2.5.3; and the unspecified address, which Linux takes for loopback.
    case machine

    /// - Parameter address: an IPv4 or IPv6 address as inet_ntop(3) writes it. Anything else, such as the path of a
    ///   socket, is this machine's.
    init(of address: String) {
        var four = in_addr()
        var six = in6_addr()
        // A zone ("%eth0") is of a link-local address.
        let text = String(address.prefix { $0 != "%" })
        if inet_pton(AF_INET, text, &four) == 1 {
            self = withUnsafeBytes(of: &four) { Self.ofFour($0[0...]) }
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            self = withUnsafeBytes(of: &six, Self.ofSix)
        } else {
            self = .machine
        }
    }

    /// - Parameter bytes: the address, and whatever follows.
    private static func ofFour(_ bytes: Slice<UnsafeRawBufferPointer>) -> AddressClass {
        let bytes = Array(bytes.prefix(4))
        guard bytes.count == 4 else { return .machine }
        switch (bytes[0], bytes[1], bytes[2]) {
        case (0, _, _), (127, _, _): return .machine
        case (169, 254, _): return .link
        case (10, _, _), (172, 16...31, _), (192, 168, _), (100, 64...127, _): return .network
        // Protocol assignments, benchmarks, multicast, and what is reserved.
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
        // 6to4 (RFC 3056), and the translation of a network's own (RFC 8215).
        case (0x20, 0x02): return ofFour(bytes[2...])
        case (0x00, 0x64) where bytes.starts(with: [0, 0x64, 0xFF, 0x9B, 0, 1]): return .network
        // Teredo has the other end's address complemented (RFC 4380); multicast.
        case (0x20, 0x01) where bytes[2] == 0 && bytes[3] == 0: return .network
        case (0xFF, _): return .network
        case (0xFE, 0x80...0xBF): return .link
        // Site-local addresses are deprecated (RFC 3879) and still not public.
        case (0xFE, 0xC0...0xFF), (0xFC...0xFD, _): return .network
        default: return .everybody
        }
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
