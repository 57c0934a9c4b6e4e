import CNetlink
import Glibc

/// What the kernel said on its routing sockets (rtnetlink(7)), as far as reachability needs it.
enum RoutingEvent: Hashable, Sendable {
    /// A link and what is known of it now; nil: it is gone.
    case link(index: Int32, Link?)
    /// An address of this machine and its flags (IFA_F_*); nil: it is gone.
    case address(LocalAddress, flags: UInt32?)
    /// A route, a rule or a next hop that routes share (ip-nexthop(8)) came or went. Which one does not matter: the kernel is asked for the outcome.
    case routing

    /// What a message says; nil if it is none of ours, or is broken.
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
        // A bridge reports its ports by link messages of its own family: a deletion there is a port that left.
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
        // On a link to one peer IFA_ADDRESS is the peer's.
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
    /// As the kernel has it: any bytes but a slash, a space and a colon.
    var name: [UInt8]
    /// IFF_*.
    var flags: UInt32

    /// Up, and able to carry packets. A link that is only up may have its cable pulled.
    var isRunning: Bool { flags & UInt32(IFF_UP.rawValue) != 0 && flags & UInt32(IFF_RUNNING.rawValue) != 0 }
}

/// The kernel's answer to "how do you reach this address?" (RTM_GETROUTE).
enum RouteAnswer: Hashable, Sendable {
    case route(Route)
    /// The kernel refuses, with this error number: the route says so, or there is none.
    case refused(Int32)
    /// It could not be asked: no memory, no buffer.
    case unanswered(Int32)

    struct Route: Hashable, Sendable {
        /// RTN_UNICAST and so on.
        var type: UInt8
        /// The outgoing link.
        var index: Int32?
        var gateway: IPAddress?
        var source: IPAddress?
    }

    /// Reads a reply; nil if the message is no reply to such a question.
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
            // Where packets come from: what the kernel chose, or what it was asked with.
            case RTA_PREFSRC.rawValue, RTA_SRC.rawValue: route.source = IPAddress(bytes: attribute.value)
            default: break
            }
        }
        self = .route(route)
    }
}
