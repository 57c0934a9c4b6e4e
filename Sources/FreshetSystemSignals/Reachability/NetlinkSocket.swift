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

    /// The size of the buffer for datagrams. The kernel lists links and addresses in datagrams of at most 32 KiB
    /// (netlink_dump in its af_netlink.c), and its other messages are shorter, unless a link has very many attributes.
    static let defaultBuffer = 32 << 10
    /// The most bytes of the buffer.
    static let mostBuffer = 1 << 20
    /// The most queries in one datagram. The kernel queues all replies before it returns, some 1 KiB of memory each.
    static let queriesPerDatagram = 64

    private let socket: OpaquePointer
    private var buffer = [UInt8](repeating: 0, count: NetlinkSocket.defaultBuffer)
    /// The number of datagrams with queries that were sent, for tests.
    private(set) var sentQueries = 0

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
        let count = buffer.withUnsafeMutableBytes { buffer in
            withUnsafeMutableBytes(of: &sender) { sender -> Int in
                var length = socklen_t(sender.count)
                // With MSG_TRUNC, the result is the size of the datagram, even if the buffer is shorter.
                return recvfrom(
                    descriptor, buffer.baseAddress, buffer.count, Int32(MSG_TRUNC),
                    sender.baseAddress?.assumingMemoryBound(to: sockaddr.self), &length)
            }
        }
        guard count >= 0 else {
            switch errno {
            case EAGAIN, EINTR: return .empty
            case ENOBUFS, ENOMEM: return .overrun
            case let number: return .failed(NetlinkError(action: "receive", number: nl_syserr2nlerr(number)))
            }
        }
        guard count > 0 else { return .empty }
        // The kernel is port 0. A process with CAP_NET_ADMIN may send to this socket, too; ignore it.
        guard sender.nl_pid == 0 else { return .foreign }
        guard count <= buffer.count else {
            // The datagram is lost like one that the kernel dropped. The next one of its size fits.
            buffer = [UInt8](repeating: 0, count: min(count, Self.mostBuffer))
            return .overrun
        }
        return .datagram(Array(buffer[..<count]))
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

    /// Asks the kernel for the routes of TCP connections to addresses. The kernel replies before a request returns.
    ///
    /// An IPv4 connection is routed twice: once to choose its source address, and then with that source, when rules for
    /// a source (ip-rule(8), from) apply, too. So the kernel is asked twice. An IPv6 connection uses the first answer.
    func routes(to addresses: some Collection<IPAddress>) -> [IPAddress: RouteAnswer] {
        var answers: [IPAddress: RouteAnswer] = [:]
        ask(addresses.map { RouteQuery(to: $0) }, &answers)
        let second = addresses.compactMap { address -> RouteQuery? in
            guard address.family == .v4, case .route(let route) = answers[address], let source = route.source else {
                return nil
            }
            return RouteQuery(to: address, from: source)
        }
        ask(second, &answers)
        return answers
    }

    /// Sends the queries, as many as possible in one datagram, and replaces the answers for their addresses.
    ///
    /// Queries without a reply are repeated alone: the socket's buffer may be too small for the replies to all of them
    /// (net.core.rmem_max), and would be too small each time.
    private func ask(_ queries: [RouteQuery], _ answers: inout [IPAddress: RouteAnswer]) {
        var rest = queries[...]
        while !rest.isEmpty {
            let part = rest.prefix(Self.queriesPerDatagram)
            rest = rest.dropFirst(part.count)
            let missing = ask(together: part, &answers)
            guard part.count > 1 else { continue }
            for query in missing { _ = ask(together: [query], &answers) }
        }
    }

    /// Sends the queries in one datagram, and replaces the answers for their addresses.
    ///
    /// - Returns: The queries without a reply.
    private func ask(
        together queries: some Collection<RouteQuery>, _ answers: inout [IPAddress: RouteAnswer]
    ) -> [RouteQuery] {
        var datagram: [UInt8] = []
        datagram.reserveCapacity(queries.count * RouteQuery.mostBytes)
        var pending: [UInt32: RouteQuery] = [:]
        for query in queries {
            let sequence = nl_socket_use_seq(socket)
            pending[sequence] = query
            query.append(to: &datagram, sequence: sequence)
        }
        let missing = send(datagram) ? takeAnswers(to: &pending, &answers) : EIO
        for query in pending.values { answers[query.address] = .unanswered(missing) }
        return Array(pending.values)
    }

    /// Reads the replies to queries, and removes what was answered.
    ///
    /// - Returns: Why the others have no answer (an error number).
    private func takeAnswers(to pending: inout [UInt32: RouteQuery], _ answers: inout [IPAddress: RouteAnswer]) -> Int32
    {
        var overruns = 0
        while !pending.isEmpty {
            switch receive() {
            case .datagram(let datagram):
                for message in NetlinkMessage.split(datagram).messages {
                    guard let query = pending[message.sequence], let answer = RouteAnswer(message) else { continue }
                    pending[message.sequence] = nil
                    answers[query.address] = answer
                }
            case .foreign: continue
            case .empty: return overruns > 0 ? ENOBUFS : EAGAIN
            case .overrun:
                // The replies before the lost ones are in the buffer, and keep it full until they are read.
                overruns += 1
                if overruns > Self.queriesPerDatagram { return ENOBUFS }
            case .failed: return EIO
            }
        }
        return 0
    }

    /// Sends a datagram to the kernel. Returns false if that failed.
    private func send(_ datagram: [UInt8]) -> Bool {
        sentQueries += 1
        var kernel = sockaddr_nl()
        kernel.nl_family = sa_family_t(AF_NETLINK)
        return withUnsafeBytes(of: &kernel) { kernel in
            sendto(
                descriptor, datagram, datagram.count, 0,
                kernel.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(kernel.count)) == datagram.count
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
