/// A target whose reachability can be followed.
public enum NetworkTarget: Hashable, Sendable, CustomStringConvertible {
    /// Anything beyond this machine's own networks, by either protocol. It stands for hosts that are known by name
    /// only. The queries use documentation addresses, which are routed like any other address; nothing is sent to them.
    case elsewhere
    /// One host.
    case address(IPAddress)

    /// 203.0.113.1 (RFC 5737) and 2001:db8::1 (RFC 3849).
    private static let documentation: [IPAddress] = ["203.0.113.1", "2001:db8::1"].compactMap(IPAddress.init)

    /// The addresses to query, at most one of each family. The target is reachable if one of them is.
    var addresses: [IPAddress] {
        switch self {
        case .elsewhere: Self.documentation
        case .address(let address): [address]
        }
    }

    public var description: String {
        switch self {
        case .elsewhere: "elsewhere"
        case .address(let address): address.description
        }
    }
}
