@testable import FreshetSystemSignals

extension FuzzTarget {
    /// Datagrams of netlink(7), and the parsed messages.
    static let netlink = FuzzTarget(
        "netlink",
        shapes: [
            CostShape("messages", unit: "\u{10}\0\0\0\u{10}\0\0\0\0\0\0\0\0\0\0\0"),
            CostShape(
                "attributes", before: "\0\u{20}\0\0\u{14}\0\0\0\0\0\0\0\0\0\0\0\u{2}\0\0\0\0\0\0\0",
                unit: "\u{4}\0\u{1}\0"),
            CostShape(
                "attributes of a link",
                before: "\0\u{20}\0\0\u{10}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                unit: "\u{8}\0\u{3}\0abcd"),
        ],
        read: { input in
            for message in NetlinkMessage.split(input).messages {
                keep(RoutingEvent(message))
                keep(RouteAnswer(message))
            }
        },
        check: { input throws(FuzzViolation) in
            let (messages, isWhole) = NetlinkMessage.split(input)
            let size = messages.reduce(0) { $0 + $1.payload.count + NetlinkMessage.headerSize }
            try hold("messages are not longer than their datagram", size <= input.count)
            var written: [UInt8] = []
            for message in messages {
                keep(RouteAnswer(message))
                if case .link(_, let link?) = RoutingEvent(message) {
                    try hold("a name has no NUL", !link.name.contains(0))
                }
                if let number = message.errorNumber { try hold("an error number is one", (0...4_095).contains(number)) }
                for number in [UInt32(message.payload.count + NetlinkMessage.headerSize)] {
                    withUnsafeBytes(of: number) { written += $0 }
                }
                withUnsafeBytes(of: message.type) { written += $0 }
                withUnsafeBytes(of: message.flags) { written += $0 }
                withUnsafeBytes(of: message.sequence) { written += $0 }
                written += [0, 0, 0, 0] + message.payload
                while !written.count.isMultiple(of: 4) { written.append(0) }
            }
            let again = NetlinkMessage.split(written)
            try hold("messages that are written again are the same", again.isWhole && again.messages == messages)
            if isWhole { try hold("a whole datagram has all its bytes read", written.count >= input.count) }
        })
}
