import Glibc

/// Literal IP addresses.
enum IPAddress {
    static func isV4(_ text: String) -> Bool {
        var address = in_addr()
        return inet_pton(AF_INET, text, &address) == 1
    }

    static func isV6(_ text: String) -> Bool {
        var address = in6_addr()
        return inet_pton(AF_INET6, text, &address) == 1
    }
}

extension ValueKind where Value == String {
    /// A literal IPv4 or IPv6 address that can be a destination.
    static let address = ValueKind(name: "an IPv4 or IPv6 address") { scalar throws(ValueError) in
        guard IPAddress.isV4(scalar.text) || IPAddress.isV6(scalar.text) else {
            throw ValueError(
                "has to be an IPv4 or IPv6 address, not \(scalar.text.quoted)",
                remedy: "write an address without brackets, port and interface; host names are not allowed here")
        }
        guard scalar.text != "0.0.0.0", scalar.text != "::" else {
            throw ValueError("is the unspecified address", remedy: "write the address of a host")
        }
        return scalar.text
    }
}
