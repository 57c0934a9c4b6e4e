import CNetlink
import Glibc

/// An event of the kernel's routing sockets (rtnetlink(7)), as far as reachability needs it.
enum RoutingEvent: Hashable, Sendable {
    /// A link and its current state; nil: it was removed.
    case link(index: Int32, Link?)
    /// An address of this machine and its flags (IFA_F_*); nil: it was removed.
    case address(LocalAddress, flags: UInt32?)
    /// A route, a rule or a shared next hop (ip-nexthop(8)) was added or removed. Which one does not matter: the kernel
    /// is asked for the resulting route.
    case routing

    /// Parses a message; nil if it has another type, or is malformed.
    init?(_ message: NetlinkMessage) {
        switch Int(message.type) {
        case Int(RTM_NEWLINK), Int(RTM_DELLINK):
            guard let event = Self.link(message) else { return nil }
            self = event
        case Int(RTM_NEWADDR), Int(RTM_DELADDR):
            guard let event = Self.address(message) else { return nil }
            self = event
        case Int(RTM_NEWROUTE), Int(RTM_DELROUTE), Int(RTM_NEWRULE), Int(RTM_DELRULE), Int(RTM_NEWNEXTHOP),
            Int(RTM_DELNEXTHOP), Int(RTM_NEWNEXTHOPBUCKET), Int(RTM_DELNEXTHOPBUCKET):
            self = .routing
        default: return nil
        }
    }

    private static func link(_ message: NetlinkMessage) -> RoutingEvent? {
        let payload = message.payload
        // struct ifinfomsg: family, pad, type (16), index (32), flags (32), change (32)
        guard let family = payload.load(UInt8.self, at: 0), let index = payload.load(Int32.self, at: 4),
            let flags = payload.load(UInt32.self, at: 8)
        else { return nil }
        // A bridge reports its ports with link messages of the family AF_BRIDGE: a deletion there is a port that left.
        guard Int32(family) == AF_UNSPEC else { return nil }
        guard Int(message.type) == Int(RTM_NEWLINK) else { return .link(index: index, nil) }
        var name: [UInt8] = []
        for attribute in NetlinkAttributes(payload.dropFirst(16)) where Int(attribute.type) == Int(IFLA_IFNAME) {
            name = Array(attribute.value.prefix { $0 != 0 })
        }
        return .link(index: index, Link(name: name, flags: flags))
    }

    private static func address(_ message: NetlinkMessage) -> RoutingEvent? {
        let payload = message.payload
        // struct ifaddrmsg: family, prefix length, flags (8), scope, index (32)
        guard let narrowFlags = payload.load(UInt8.self, at: 2), let index = payload.load(Int32.self, at: 4) else {
            return nil
        }
        var flags = UInt32(narrowFlags)
        var address: IPAddress?
        var local: IPAddress?
        for attribute in NetlinkAttributes(payload.dropFirst(8)) {
            switch Int(attribute.type) {
            case Int(IFA_ADDRESS): address = IPAddress(bytes: attribute.value)
            case Int(IFA_LOCAL): local = IPAddress(bytes: attribute.value)
            case Int(IFA_FLAGS): flags = attribute.value.load(UInt32.self, at: 0) ?? flags
            default: break
            }
        }
        // On a point-to-point link, IFA_ADDRESS is the peer's address.
        guard let own = local ?? address else { return nil }
        let isNew = Int(message.type) == Int(RTM_NEWADDR)
        return .address(LocalAddress(index: index, address: own), flags: isNew ? flags : nil)
    }
}

/// An address of this machine on one of its links.
struct LocalAddress: Hashable, Sendable {
    var index: Int32
    var address: IPAddress
}

/// One network interface.
struct Link: Hashable, Sendable {
    /// The kernel's name: any bytes except slash, space and colon.
    var name: [UInt8]
    /// IFF_*.
    var flags: UInt32

    /// Whether the link is up and can carry packets. A link that is only up may have no cable.
    var isRunning: Bool { flags & UInt32(IFF_UP.rawValue) != 0 && flags & UInt32(IFF_RUNNING.rawValue) != 0 }
}

/// The kernel's reply to a query for a route (RTM_GETROUTE).
enum RouteAnswer: Hashable, Sendable {
    case route(Route)
    /// The kernel refuses with this error number: the route forbids it, or there is no route.
    case refused(Int32)
    /// The query failed: no memory, no buffer.
    case unanswered(Int32)

    struct Route: Hashable, Sendable {
        /// RTN_UNICAST etc.
        var type: UInt8
        /// The outgoing link.
        var index: Int32?
        var gateway: IPAddress?
        var source: IPAddress?
    }

    /// Parses a reply; nil if the message is not a reply to such a query.
    init?(_ message: NetlinkMessage) {
        if Int32(message.type) == NLMSG_ERROR {
            guard let number = message.errorNumber, number != 0 else { return nil }
            self = .refused(number)
            return
        }
        let payload = message.payload
        // struct rtmsg: family, destination and source length, TOS, table, protocol, scope, type, flags (32)
        guard Int(message.type) == Int(RTM_NEWROUTE), let type = payload.load(UInt8.self, at: 7) else { return nil }
        var route = Route(type: type)
        for attribute in NetlinkAttributes(payload.dropFirst(12)) {
            switch UInt32(attribute.type) {
            case RTA_OIF.rawValue: route.index = attribute.value.load(Int32.self, at: 0)
            case RTA_GATEWAY.rawValue: route.gateway = IPAddress(bytes: attribute.value)
            // A gateway of the other family (RFC 8950): struct rtvia is a family (16) and the address.
            case RTA_VIA.rawValue: route.gateway = IPAddress(bytes: attribute.value.dropFirst(2))
            // The source of packets: chosen by the kernel, or given in the query.
            case RTA_PREFSRC.rawValue, RTA_SRC.rawValue: route.source = IPAddress(bytes: attribute.value)
            default: break
            }
        }
        self = .route(route)
    }
}
