import CNetlink
import Glibc

/// One way to a target: the next hop, the link, and the address that packets leave from.
public struct NetworkPath: Hashable, Sendable, CustomStringConvertible {
    /// The router; nil if the target is on the link itself.
    public let gateway: IPAddress?
    /// The kernel's number of the link. It stays when a link is renamed.
    public let interfaceIndex: Int32
    /// The link's name, fit to be shown and for nothing else: the kernel accepts almost any bytes, so what is not
    /// plain is escaped.
    public let interfaceName: String
    /// The address that packets leave from.
    public let source: IPAddress?

    public init(gateway: IPAddress?, interfaceIndex: Int32, interfaceName: String, source: IPAddress?) {
        self.gateway = gateway
        self.interfaceIndex = interfaceIndex
        self.interfaceName = interfaceName
        self.source = source
    }

    /// Whether packets go the same way. A new name of the link changes nothing.
    func isSame(as other: NetworkPath) -> Bool {
        gateway == other.gateway && interfaceIndex == other.interfaceIndex && source == other.source
    }

    /// Such as `via 192.0.2.1 on wan0 from 192.0.2.2`.
    public var description: String {
        [gateway.map { "via \($0) " }, "on \(interfaceName)", source.map { " from \($0)" }].compactMap { $0 }.joined()
    }
}

/// Why a target is not reachable.
public enum UnreachableReason: Hashable, Sendable, CustomStringConvertible {
    case noRoute
    /// A route says no: `unreachable`, `blackhole`, `prohibit` and the like (ip-route(8)).
    case refused(by: String)
    /// The link is down, or has no carrier.
    case linkNotRunning(String)
    /// No address to send from, or none yet: duplicate detection goes on or has failed (RFC 4862, 5.4).
    case noSourceAddress(interface: String)
    /// The kernel answered with another error.
    case unknown(errno: Int32)

    public var description: String {
        switch self {
        case .noRoute: "no route"
        case .refused(let type): "the route is of type \(type)"
        case .linkNotRunning(let name): "\(name) is down or has no carrier"
        case .noSourceAddress(let name): "no usable address to send from on \(name)"
        case .unknown(let number): "the kernel refuses to route there (error \(number))"
        }
    }
}

/// Whether and how an address is reached.
enum PathState: Hashable, Sendable {
    case reachable(NetworkPath)
    case unreachable(UnreachableReason)

    var path: NetworkPath? {
        switch self {
        case .reachable(let path): path
        case .unreachable: nil
        }
    }
}

/// How a target is reached by each protocol at one moment.
struct NetworkSnapshot: Hashable, Sendable {
    /// By family; a family that is not asked for is missing.
    var states: [IPAddress.Family: PathState] = [:]

    /// In the order of the families.
    var paths: [NetworkPath] { IPAddress.Family.allCases.compactMap { states[$0]?.path } }
    var isReachable: Bool { states.values.contains { $0.path != nil } }

    /// The obstacle that tells most: one that is not the mere absence of a route comes first.
    var obstacle: UnreachableReason? {
        guard !isReachable else { return nil }
        let obstacles = IPAddress.Family.allCases.compactMap { family -> UnreachableReason? in
            guard case .unreachable(let obstacle) = states[family] else { return nil }
            return obstacle
        }
        return obstacles.first { $0 != .noRoute } ?? obstacles.first
    }
}

extension PathState {
    /// Judges the kernel's answer: *reachable* is a route to deliver by, its link running, and an address to send from
    /// that may be used.
    ///
    /// Nil if the kernel gave no answer, and so nothing new is known.
    init?(_ answer: RouteAnswer, to destination: IPAddress, tables: KernelTables) {
        switch answer {
        case .unanswered: return nil
        case .refused(let number): self = .unreachable(UnreachableReason(errno: number))
        case .route(let route): self = Self.judge(route, to: destination, tables: tables)
        }
    }

    private static func judge(
        _ route: RouteAnswer.Route, to destination: IPAddress, tables: KernelTables
    ) -> PathState {
        let type = Int(route.type)
        // A local route: the target is this machine.
        guard type == Int(RTN_UNICAST) || type == Int(RTN_LOCAL) else {
            return .unreachable(.refused(by: name(ofRouteType: type)))
        }
        guard let index = route.index else { return .unreachable(.noRoute) }
        let link = tables.links[index]
        let name = link.map { InterfaceName.shown($0.name) } ?? "link \(index)"
        guard let link, link.isRunning else { return .unreachable(.linkNotRunning(name)) }
        guard isUsable(route.source, to: destination, tables: tables) else {
            return .unreachable(.noSourceAddress(interface: name))
        }
        return .reachable(
            NetworkPath(gateway: route.gateway, interfaceIndex: index, interfaceName: name, source: route.source))
    }

    /// An address may be used if it is not known to be unfit on every link that has it. One that no link lists is
    /// believed: the kernel sends from any address of a local route, listed or not.
    private static func isUsable(_ source: IPAddress?, to destination: IPAddress, tables: KernelTables) -> Bool {
        guard let source else { return false }
        // With no other address the kernel offers ::1 as IPv6's; nothing comes back to it.
        if source.isLoopback && !destination.isLoopback { return false }
        // Routers do not forward link-local sources (RFC 4291, 2.5.6): with nothing else, only the link is reached.
        if source.isIPv6LinkLocal && !destination.isIPv6LinkLocal { return false }
        guard let flags = tables.addresses[source]?.values, !flags.isEmpty else { return true }
        return flags.contains { flags in
            let tentative = flags & UInt32(IFA_F_TENTATIVE) != 0 && flags & UInt32(IFA_F_OPTIMISTIC) == 0
            return !tentative && flags & UInt32(IFA_F_DADFAILED) == 0
        }
    }

    private static func name(ofRouteType type: Int) -> String {
        switch type {
        case Int(RTN_BLACKHOLE): "blackhole"
        case Int(RTN_UNREACHABLE): "unreachable"
        case Int(RTN_PROHIBIT): "prohibit"
        case Int(RTN_THROW): "throw"
        case Int(RTN_BROADCAST): "broadcast"
        case Int(RTN_MULTICAST): "multicast"
        case Int(RTN_ANYCAST): "anycast"
        default: "\(type)"
        }
    }
}

extension UnreachableReason {
    /// The errors by which the kernel answers for routes that say no (fib_props in the kernel's IPv4 code,
    /// ip6_rt_type_to_error in that of IPv6).
    init(errno number: Int32) {
        switch number {
        case ENETUNREACH: self = .noRoute
        case EHOSTUNREACH: self = .refused(by: "unreachable")
        case EINVAL: self = .refused(by: "blackhole")
        case EACCES: self = .refused(by: "prohibit")
        default: self = .unknown(errno: number)
        }
    }
}

/// Names of links are text from outside: only ever shown.
enum InterfaceName {
    /// The name with everything but visible ASCII as `\xNN`, so that it can stand in a log or on a terminal.
    static func shown(_ name: [UInt8]) -> String {
        let digits = Array("0123456789abcdef")
        return String(
            name.flatMap { byte -> [Character] in
                byte > 0x20 && byte < 0x7f && byte != UInt8(ascii: "\\")
                    ? [Character(Unicode.Scalar(byte))]
                    : ["\\", "x", digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            })
    }
}
