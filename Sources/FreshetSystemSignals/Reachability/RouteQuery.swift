import CNetlink
import Glibc

/// A query for the route of a TCP connection (RTM_GETROUTE of rtnetlink(7)).
struct RouteQuery: Hashable, Sendable {
    var address: IPAddress
    /// The source address of the connection; nil: the kernel chooses it.
    var source: IPAddress?

    /// The most bytes of a query: two headers, two addresses, and the protocol.
    static let mostBytes = NetlinkMessage.headerSize + fixedSize + 2 * (4 + 16) + 8
    /// sizeof(struct rtmsg)
    private static let fixedSize = 12

    init(to address: IPAddress, from source: IPAddress? = nil) {
        self.address = address
        self.source = source
    }

    /// Appends the query as a message of netlink(7).
    func append(to datagram: inout [UInt8], sequence: UInt32) {
        let start = datagram.count
        // struct nlmsghdr: length (32), type (16), flags (16), sequence (32), port (32)
        datagram.appendNative(UInt32(0))
        datagram.appendNative(UInt16(RTM_GETROUTE))
        datagram.appendNative(UInt16(NLM_F_REQUEST))
        datagram.appendNative(sequence)
        datagram.appendNative(UInt32(0))
        // struct rtmsg: family, destination and source length, TOS, table, protocol, scope, type, flags (32)
        datagram.append(UInt8(address.family == .v4 ? AF_INET : AF_INET6))
        datagram.append(UInt8(address.byteCount * 8))
        datagram.append(UInt8(source.map { $0.byteCount * 8 } ?? 0))
        for _ in 3..<Self.fixedSize { datagram.append(UInt8(0)) }
        Self.append(RTA_DST, address, to: &datagram)
        // A rule may be for one protocol (ip-rule(8), ipproto); without a protocol, the kernel assumes another one.
        datagram.appendNative(UInt16(5))
        datagram.appendNative(UInt16(RTA_IP_PROTO.rawValue))
        datagram.appendNative(UInt32(IPPROTO_TCP).littleEndian)  // one byte, and three of padding
        if let source { Self.append(RTA_SRC, source, to: &datagram) }
        let length = UInt32(datagram.count - start)
        withUnsafeBytes(of: length) { datagram.replaceSubrange(start..<start + 4, with: $0) }
    }

    private static func append(_ type: rtattr_type_t, _ address: IPAddress, to datagram: inout [UInt8]) {
        datagram.appendNative(UInt16(4 + address.byteCount))
        datagram.appendNative(UInt16(type.rawValue))
        address.append(to: &datagram)
    }
}

extension [UInt8] {
    /// Appends an integer in the machine's byte order, as netlink uses it.
    fileprivate mutating func appendNative<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value) {
        Swift.withUnsafeBytes(of: value) { append(contentsOf: $0) }
    }
}
