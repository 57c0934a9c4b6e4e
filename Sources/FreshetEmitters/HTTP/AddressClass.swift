import Glibc

/// Who can reach an address: everybody, a network, a link, or this machine. A larger class is more private.
///
/// A server in the Internet may redirect a request to where only this machine can send one: to a service on loopback, or
/// to a router. What it answers would be published. So no redirect leads to a more private class than the configured
/// origin's.
enum AddressClass: Int, Comparable, Sendable {
    case everybody
    /// RFC 1918, RFC 6598 and RFC 4193.
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
            self = withUnsafeBytes(of: &four) { Self.ofFour($0[0], $0[1]) }
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            self = withUnsafeBytes(of: &six, Self.ofSix)
        } else {
            self = .machine
        }
    }

    private static func ofFour(_ first: UInt8, _ second: UInt8) -> AddressClass {
        switch (first, second) {
        case (0, _), (127, _): .machine
        case (169, 254): .link
        case (10, _), (172, 16...31), (192, 168), (100, 64...127): .network
        default: .everybody
        }
    }

    private static func ofSix(_ bytes: UnsafeRawBufferPointer) -> AddressClass {
        let zeros = bytes.prefix { $0 == 0 }.count
        // ::, ::1 and the other half of the old "compatible" addresses; ::ffff:a.b.c.d; 64:ff9b::a.b.c.d (RFC 6052).
        let isMapped = zeros == 10 && bytes[10] == 0xFF && bytes[11] == 0xFF
        let isTranslated = bytes.starts(with: [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0])
        if isMapped || isTranslated { return ofFour(bytes[12], bytes[13]) }
        if zeros >= 12 { return zeros >= 15 ? .machine : ofFour(bytes[12], bytes[13]) }
        switch (bytes[0], bytes[1]) {
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
