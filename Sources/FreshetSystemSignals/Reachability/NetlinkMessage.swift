import CNetlink

/// One message of netlink(7): the fields of its header, and its payload.
struct NetlinkMessage: Hashable, Sendable {
    var type: UInt16
    var flags: UInt16
    var sequence: UInt32
    var payload: ArraySlice<UInt8>

    /// Whether the kernel's table changed during the dump: the messages may be inconsistent.
    var isInterruptedDump: Bool { flags & UInt16(NLM_F_DUMP_INTR) != 0 }

    /// The error number of an NLMSG_ERROR or NLMSG_DONE, positive; 0 is success. Nil if the message has none.
    var errorNumber: Int32? {
        // The kernel's errors are -1 to -4095 (MAX_ERRNO).
        guard let number = payload.load(Int32.self, at: 0), (-4_095...0).contains(number) else { return nil }
        return -number
    }

    /// Splits a datagram. `isWhole` is false if its end is not a message; the messages before are valid.
    static func split(_ datagram: [UInt8]) -> (messages: [NetlinkMessage], isWhole: Bool) {
        var messages: [NetlinkMessage] = []
        var rest = datagram[...]
        while !rest.isEmpty {
            guard let length = rest.load(UInt32.self, at: 0), let type = rest.load(UInt16.self, at: 4),
                let flags = rest.load(UInt16.self, at: 6), let sequence = rest.load(UInt32.self, at: 8),
                length >= headerSize, length <= rest.count
            else { return (messages, false) }
            messages.append(
                NetlinkMessage(
                    type: type, flags: flags, sequence: sequence,
                    payload: rest.dropFirst(headerSize).prefix(Int(length) - headerSize)))
            rest = rest.dropFirst(aligned(Int(length)))
        }
        return (messages, true)
    }

    /// sizeof(struct nlmsghdr)
    static let headerSize = 16
    /// Messages and attributes begin at multiples of four bytes (NLMSG_ALIGNTO, RTA_ALIGNTO).
    static func aligned(_ length: Int) -> Int { (length + 3) & ~3 }
}

/// The attributes after a message's fixed part (rtnetlink(7)): a length, a type, a value.
struct NetlinkAttributes: Sequence, IteratorProtocol {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    /// The next attribute; nil at the end, and at an invalid attribute.
    mutating func next() -> (type: UInt16, value: ArraySlice<UInt8>)? {
        guard let length = rest.load(UInt16.self, at: 0), let type = rest.load(UInt16.self, at: 2),
            length >= 4, length <= rest.count
        else { return nil }
        defer { rest = rest.dropFirst(NetlinkMessage.aligned(Int(length))) }
        // The two highest bits describe the encoding of the value (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
        return (type & 0x3fff, rest.dropFirst(4).prefix(Int(length) - 4))
    }
}

extension ArraySlice<UInt8> {
    /// Loads an integer in the machine's byte order, as netlink uses it; nil if it would end beyond the slice.
    func load<Value: FixedWidthInteger & BitwiseCopyable>(_: Value.Type, at offset: Int) -> Value? {
        guard offset >= 0, offset + MemoryLayout<Value>.size <= count else { return nil }
        return withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Value.self) }
    }
}
