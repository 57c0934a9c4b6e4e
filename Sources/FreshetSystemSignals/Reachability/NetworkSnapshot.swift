import CNetlink
import Glibc

/// One path to a target: the next hop, the link, and the source address.
public struct NetworkPath: Hashable, Sendable, CustomStringConvertible {
    /// The router; nil if the target is on the link itself.
    public let gateway: IPAddress?
    /// The kernel's index of the link. It stays when a link is renamed.
    public let interfaceIndex: Int32
    /// The link's name, only for display: the kernel accepts almost any bytes, so bytes that are not plain text are
    /// escaped.
    public let interfaceName: String
    /// The source address of packets.
    public let source: IPAddress?

    public init(gateway: IPAddress?, interfaceIndex: Int32, interfaceName: String, source: IPAddress?) {
        self.gateway = gateway
        self.interfaceIndex = interfaceIndex
        self.interfaceName = interfaceName
        self.source = source
    }

    /// Whether packets take the same path. A new name of the link does not matter.
    func isSame(as other: NetworkPath) -> Bool {
        gateway == other.gateway && interfaceIndex == other.interfaceIndex && source == other.source
    }

    /// Such as `via 192.0.2.1 on wan0 from 192.0.2.2`.
    public var description: String {
        var text = ""
        // One allocation, and no interpolation, which takes ten times as long.
        text.reserveCapacity(96)
        if let gateway {
            text.append("via ")
            text.append(gateway.description)
            text.append(" ")
        }
        text.append("on ")
        text.append(interfaceName)
        if let source {
            text.append(" from ")
            text.append(source.description)
        }
        return text
    }
}

/// Why a target is not reachable.
public enum UnreachableReason: Hashable, Sendable, CustomStringConvertible {
    case noRoute
    /// The route's type forbids it: `unreachable`, `blackhole`, `prohibit` and the like (ip-route(8)).
    case refused(by: String)
    /// The link is down, or has no carrier.
    case linkNotRunning(String)
    /// There is no source address, or none yet: duplicate address detection is in progress or has failed (RFC 4862,
    /// 5.4).
    case noSourceAddress(interface: String)
    /// The kernel replied with another error.
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

/// Whether an address is reachable, and on which path.
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

/// The paths to a target by protocol at one moment.
struct NetworkSnapshot: Hashable, Sendable {
    /// By family; a family without a query is missing.
    var states: [IPAddress.Family: PathState] = [:]

    /// The paths, in the order of the families.
    var paths: [NetworkPath] { IPAddress.Family.allCases.compactMap { states[$0]?.path } }
    var isReachable: Bool { states.values.contains { $0.path != nil } }

    /// The most specific obstacle: `noRoute` comes last.
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
    /// Evaluates the kernel's reply: *reachable* requires a route that delivers, a running link, and a usable source
    /// address.
    ///
    /// Nil if the kernel did not reply, so that nothing new is known.
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
        // A local route means that the target is this machine.
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

    /// An address is usable unless it is known to be unusable on every link that has it. An address that no link lists
    /// is usable: the kernel sends from any address of a local route, listed or not.
    private static func isUsable(_ source: IPAddress?, to destination: IPAddress, tables: KernelTables) -> Bool {
        guard let source else { return false }
        // Without another address the kernel selects ::1 for IPv6; no reply would arrive there.
        if source.isLoopback && !destination.isLoopback { return false }
        // Routers do not forward link-local sources (RFC 4291, 2.5.6): without another source, only the link is
        // reachable.
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
    /// The errors with which the kernel replies for forbidding routes (fib_props in the kernel's IPv4 code,
    /// ip6_rt_type_to_error in its IPv6 code).
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

/// Names of links are external text: use them only for display.
enum InterfaceName {
    /// The name with everything except visible ASCII as `\xNN`, for logs and terminals.
    static func shown(_ name: [UInt8]) -> String {
        guard !name.allSatisfy(isShown) else { return String(decoding: name, as: UTF8.self) }
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: name.flatMap { byte -> [UInt8] in
                isShown(byte)
                    ? [byte]
                    : [UInt8(ascii: "\\"), UInt8(ascii: "x"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }, as: UTF8.self)
    }
    private static func isShown(_ byte: UInt8) -> Bool { byte > 0x20 && byte < 0x7f && byte != UInt8(ascii: "\\") }
}
