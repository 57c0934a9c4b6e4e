/// What is to be reachable.
public enum NetworkTarget: Hashable, Sendable, CustomStringConvertible {
    /// Anything beyond this machine's own networks, by either protocol. It stands for hosts that are known by name
    /// only, and is asked for by documentation addresses, which are routed like any other and to which nothing is sent.
    case elsewhere
    /// One host.
    case address(IPAddress)

    /// 203.0.113.1 (RFC 5737) and 2001:db8::1 (RFC 3849).
    private static let documentation: [IPAddress] = ["203.0.113.1", "2001:db8::1"].compactMap(IPAddress.init)

    /// What the kernel is asked for, at most one address of each family. The target is reachable if any one is.
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
