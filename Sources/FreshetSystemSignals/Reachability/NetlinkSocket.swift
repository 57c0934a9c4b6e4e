import CNetlink
import FreshetEventLoop
import Glibc

/// An error of netlink.
struct NetlinkError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The failed action.
    var action: String
    /// libnl's error number, positive.
    var number: Int32

    var description: String {
        let reason = nl_geterror(number).map { String(cString: $0) } ?? "error \(number)"
        return "\(action): \(reason)"
    }
}

/// A routing socket of libnl: the only owner of its C objects. It never blocks. Use it on one thread at a time.
///
/// A socket stays in the network namespace of the thread that opened it (network_namespaces(7)).
final class NetlinkSocket {
    /// The result of one read.
    enum Received: Hashable {
        case datagram([UInt8])
        /// A datagram from a process, not from the kernel; it is ignored.
        case foreign
        /// There is nothing to read now.
        case empty
        /// The kernel had to drop messages (ENOBUFS): the tables have to be dumped again.
        case overrun
        case failed(NetlinkError)
    }

    private let socket: OpaquePointer

    /// The socket's descriptor, for watching; this object keeps it.
    var descriptor: Int32 { nl_socket_get_fd(socket) }

    /// The socket's own address, for tests.
    var port: UInt32 { nl_socket_get_local_port(socket) }

    /// - Parameters:
    ///   - groups: The multicast groups to join (RTNLGRP_*).
    ///   - optionalGroups: Groups to join if the kernel supports them.
    ///   - receiveBuffer: How many bytes the kernel may queue; the kernel's limit is net.core.rmem_max.
    init(
        groups: [rtnetlink_groups] = [], optionalGroups: [rtnetlink_groups] = [], receiveBuffer: Int32
    ) throws(NetlinkError) {
        guard let socket = nl_socket_alloc() else { throw NetlinkError(action: "open", number: NLE_NOMEM) }
        self.socket = socket
        // Events do not have our sequence numbers, and we match replies ourselves. Acknowledgements are not needed.
        nl_socket_disable_seq_check(socket)
        nl_socket_disable_auto_ack(socket)
        // Read a datagram's size before the datagram, so that none is truncated.
        nl_socket_enable_msg_peek(socket)
        try Self.check("connect to the kernel", nl_connect(socket, NETLINK_ROUTE))
        try Self.check("set up the socket", nl_socket_set_nonblocking(socket))
        try Self.check("size the buffers", nl_socket_set_buffer_size(socket, receiveBuffer, 0))
        for group in groups {
            try Self.check("join group \(group.rawValue)", nl_socket_add_membership(socket, Int32(group.rawValue)))
        }
        for group in optionalGroups { nl_socket_add_membership(socket, Int32(group.rawValue)) }
    }

    deinit { nl_socket_free(socket) }

    private static func check(_ action: String, _ result: Int32) throws(NetlinkError) {
        guard result >= 0 else { throw NetlinkError(action: action, number: -result) }
    }

    /// Takes the next datagram.
    func receive() -> Received {
        var sender = sockaddr_nl()
        var buffer: UnsafeMutablePointer<UInt8>?
        let count = nl_recv(socket, &sender, &buffer, nil)
        defer { free(buffer) }
        guard count >= 0 else {
            switch -count {
            case NLE_AGAIN: return .empty
            case NLE_NOMEM: return .overrun  // libnl's name for ENOBUFS
            default: return .failed(NetlinkError(action: "receive", number: -count))
            }
        }
        guard count > 0, let buffer else { return .empty }
        // The kernel is port 0. A process with CAP_NET_ADMIN may send to this socket, too; ignore it.
        guard sender.nl_pid == 0 else { return .foreign }
        return .datagram(Array(UnsafeBufferPointer(start: buffer, count: Int(count))))
    }

    /// Sends a request and returns its sequence number.
    ///
    /// - Parameters:
    ///   - header: The fixed part after the netlink header.
    ///   - attributes: The attributes after the fixed part.
    private func send(
        _ type: Int32, flags: Int32, header: [UInt8], attributes: [(type: Int32, value: [UInt8])] = []
    ) throws(NetlinkError) -> UInt32 {
        guard let message = nlmsg_alloc_simple(type, flags | NLM_F_REQUEST) else {
            throw NetlinkError(action: "send a request", number: NLE_NOMEM)
        }
        defer { nlmsg_free(message) }
        var header = header
        try Self.check("send a request", nlmsg_append(message, &header, header.count, Int32(NLMSG_ALIGNTO)))
        for attribute in attributes {
            let length = Int32(attribute.value.count)
            try Self.check("send a request", nla_put(message, attribute.type, length, attribute.value))
        }
        try Self.check("send a request", nl_send_auto(socket, message))
        return nlmsg_hdr(message).pointee.nlmsg_seq
    }

    // MARK: Queries

    /// Asks the kernel for the route of a TCP connection to an address. The kernel replies before the request returns.
    ///
    /// An IPv4 connection is routed twice: once to choose its source address, and then with that source, when rules for
    /// a source (ip-rule(8), from) apply, too. So the kernel is asked twice. An IPv6 connection uses the first answer.
    func route(to address: IPAddress) -> RouteAnswer {
        let answer = route(to: address, from: nil)
        guard address.family == .v4, case .route(let route) = answer, let source = route.source else { return answer }
        return self.route(to: address, from: source)
    }

    private func route(to address: IPAddress, from source: IPAddress?) -> RouteAnswer {
        let family = address.family == .v4 ? AF_INET : AF_INET6
        var header = [UInt8](repeating: 0, count: MemoryLayout<rtmsg>.size)
        header[0] = UInt8(family)
        header[1] = UInt8(address.bytes.count * 8)
        var attributes = [
            (Int32(RTA_DST.rawValue), address.bytes),
            // A rule may be for one protocol (ip-rule(8), ipproto); without a protocol, the kernel assumes another one.
            (Int32(RTA_IP_PROTO.rawValue), [UInt8(IPPROTO_TCP)]),
        ]
        if let source {
            header[2] = UInt8(source.bytes.count * 8)
            attributes.append((Int32(RTA_SRC.rawValue), source.bytes))
        }
        do {
            let sequence = try send(Int32(RTM_GETROUTE), flags: 0, header: header, attributes: attributes)
            while true {
                switch receive() {
                case .datagram(let datagram):
                    for message in NetlinkMessage.split(datagram).messages where message.sequence == sequence {
                        if let answer = RouteAnswer(message) { return answer }
                    }
                case .foreign: continue
                case .empty: return .unanswered(EAGAIN)
                case .overrun: return .unanswered(ENOBUFS)
                case .failed: return .unanswered(EIO)
                }
            }
        } catch {
            return .unanswered(EIO)
        }
    }

    /// Lists all links and addresses into new tables; nil if a change interrupted the list, which then has to be
    /// requested again.
    func dumpTables() throws(NetlinkError) -> KernelTables? {
        var tables = KernelTables()
        // Skip the counters of each link, the larger part of the reply.
        let skipStatistics = withUnsafeBytes(of: UInt32(RTEXT_FILTER_SKIP_STATS)) { Array($0) }
        let links = try dump(
            Int32(RTM_GETLINK), header: [UInt8](repeating: 0, count: MemoryLayout<ifinfomsg>.size),
            attributes: [(Int32(IFLA_EXT_MASK), skipStatistics)], into: &tables)
        let addresses = try dump(
            Int32(RTM_GETADDR), header: [UInt8](repeating: 0, count: MemoryLayout<ifaddrmsg>.size), into: &tables)
        return links && addresses ? tables : nil
    }

    /// Returns whether the list is consistent.
    private func dump(
        _ type: Int32, header: [UInt8], attributes: [(type: Int32, value: [UInt8])] = [],
        into tables: inout KernelTables
    ) throws(NetlinkError) -> Bool {
        let sequence = try send(type, flags: NLM_F_DUMP, header: header, attributes: attributes)
        var isConsistent = true
        while true {
            switch receive() {
            case .datagram(let datagram):
                let (messages, isWhole) = NetlinkMessage.split(datagram)
                isConsistent = isConsistent && isWhole
                for message in messages where message.sequence == sequence {
                    isConsistent = isConsistent && !message.isInterruptedDump
                    if Int32(message.type) == NLMSG_DONE || Int32(message.type) == NLMSG_ERROR {
                        return isConsistent && (message.errorNumber ?? 0) == 0
                    }
                    if let event = RoutingEvent(message) { tables.apply(event) }
                }
            case .foreign: continue
            case .empty, .overrun: return false
            case .failed(let error): throw error
            }
        }
    }
}
