import Testing

@testable import FreshetSystemSignals

@Suite("Netlink messages")
struct NetlinkMessageTests {
    @Test("are split at the boundaries in a datagram, without the padding")
    func split() {
        let first = Bytes.message(16, sequence: 7, [1, 2, 3])
        let second = Bytes.message(3, flags: 0x10, sequence: 8, [])
        let (messages, isWhole) = NetlinkMessage.split(first + [0] + second)
        #expect(isWhole)
        #expect(messages.map(\.type) == [16, 3])
        #expect(messages.map(\.sequence) == [7, 8])
        #expect(messages.map { Array($0.payload) } == [[1, 2, 3], []])
        #expect(messages.map(\.isInterruptedDump) == [false, true])
    }

    @Test("a query for a route has the address, the protocol TCP, and the source if there is one")
    func routeQuery() throws {
        var datagram: [UInt8] = []
        RouteQuery(to: try address("192.0.2.1")).append(to: &datagram, sequence: 7)
        RouteQuery(to: try address("192.0.2.1"), from: try address("192.0.2.2")).append(to: &datagram, sequence: 8)
        RouteQuery(to: try address("2001:db8::1")).append(to: &datagram, sequence: 9)
        let zeros = [UInt8](repeating: 0, count: 9)
        let (first, tcp) = (Bytes.attribute(1, [192, 0, 2, 1]), Bytes.attribute(27, [6]))
        let sixth: [UInt8] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
        #expect(
            datagram
                == Bytes.message(26, flags: 1, sequence: 7, [2, 32, 0] + zeros + first + tcp)
                + Bytes.message(
                    26, flags: 1, sequence: 8,
                    [2, 32, 32] + zeros + first + tcp + Bytes.attribute(2, [192, 0, 2, 2]))
                + Bytes.message(
                    26, flags: 1, sequence: 9, [10, 128, 0] + zeros + Bytes.attribute(1, sixth) + tcp))
        #expect(NetlinkMessage.split(datagram).messages.allSatisfy { $0.payload.count + 16 <= RouteQuery.mostBytes })
    }

    @Test("that are truncated anywhere lose no earlier message, and never trap")
    func truncation() {
        let first = Bytes.link(index: 2, flags: 1, name: Array("wan0".utf8))
        let second = Bytes.route(attributes: [Bytes.attribute(4, Bytes.of(Int32(2)))])
        let whole = first + second
        for count in 0..<whole.count {
            let (messages, isWhole) = NetlinkMessage.split(Array(whole.prefix(count)))
            #expect(messages.count == (count < first.count ? 0 : 1))
            #expect(isWhole == (count == 0 || count == first.count))
        }
    }

    @Test("with an impossible length are ignored", arguments: [0, 15, 17, UInt32.max])
    func lengths(_ length: UInt32) {
        let datagram = Bytes.of(length) + [UInt8](repeating: 0, count: 12)
        let (messages, isWhole) = NetlinkMessage.split(datagram)
        #expect(messages.isEmpty && !isWhole)
    }

    @Test("with any bytes as payload are read without a trap")
    func anyPayload() {
        for type: UInt16 in [2, 3, 16, 17, 20, 21, 24, 25, 32, 33, 99] {
            for count in 0..<64 {
                for byte: UInt8 in [0, 1, 4, 0xff] {
                    let payload = [UInt8](repeating: byte, count: count)
                    let message = NetlinkMessage(type: type, flags: 0, sequence: 0, payload: payload[...])
                    _ = RoutingEvent(message)
                    _ = RouteAnswer(message)
                    #expect(message.errorNumber == nil || count >= 4)
                }
            }
        }
    }
}

@Suite("Routing events")
struct RoutingEventTests {
    @Test("contain a link, its flags and its name")
    func link() throws {
        let message = try Bytes.single(Bytes.link(index: 7, flags: 0x1_1043, name: Array("wan0".utf8)))
        #expect(RoutingEvent(message) == .link(index: 7, Link(name: Array("wan0".utf8), flags: 0x1_1043)))
        let gone = try Bytes.single(Bytes.link(17, index: 7, flags: 0, name: Array("wan0".utf8)))
        #expect(RoutingEvent(gone) == .link(index: 7, nil))
    }

    @Test("of a bridge's own family do not remove the link")
    func bridgePort() throws {
        // AF_BRIDGE is 7: a port left its bridge.
        #expect(RoutingEvent(try Bytes.single(Bytes.link(17, family: 7, index: 3, flags: 0, name: [0x61]))) == nil)
    }

    @Test("contain an address: the local one if there is a peer, the wide flags if there are any")
    func addresses() throws {
        let peer = try address("192.0.2.9"), own = try address("192.0.2.2"), six = try address("2001:db8::2")
        let four = Bytes.address(
            family: 2, flags: 0x80, index: 2,
            attributes: [Bytes.attribute(1, peer.bytes), Bytes.attribute(2, own.bytes)])
        #expect(
            RoutingEvent(try Bytes.single(four)) == .address(LocalAddress(index: 2, address: own), flags: 0x80))
        let wide = Bytes.address(
            family: 10, flags: 0x40, index: 2,
            attributes: [Bytes.attribute(1, six.bytes), Bytes.attribute(8, Bytes.of(UInt32(0x140)))])
        #expect(
            RoutingEvent(try Bytes.single(wide)) == .address(LocalAddress(index: 2, address: six), flags: 0x140))
        let gone = Bytes.address(21, family: 10, index: 2, attributes: [Bytes.attribute(1, six.bytes)])
        #expect(RoutingEvent(try Bytes.single(gone)) == .address(LocalAddress(index: 2, address: six), flags: nil))
    }

    @Test("of routes, rules and next hops only report a change", arguments: [24, 25, 32, 33, 104, 105, 116])
    func routing(_ type: UInt16) throws {
        #expect(RoutingEvent(try Bytes.single(Bytes.message(type, []))) == .routing)
    }
}

@Suite("The kernel's reply")
struct RouteAnswerTests {
    @Test("is a route with link, gateway and source")
    func route() throws {
        let message = Bytes.route(attributes: [
            Bytes.attribute(4, Bytes.of(Int32(2))), Bytes.attribute(5, try address("192.0.2.1").bytes),
            Bytes.attribute(7, try address("192.0.2.2").bytes),
        ])
        let expected = RouteAnswer.Route(
            type: 1, index: 2, gateway: try address("192.0.2.1"), source: try address("192.0.2.2"))
        #expect(RouteAnswer(try Bytes.single(message)) == .route(expected))
    }

    @Test("may have a gateway of the other family")
    func via() throws {
        let message = Bytes.route(attributes: [
            Bytes.attribute(4, Bytes.of(Int32(2))), Bytes.attribute(18, [10, 0] + (try address("fe80::1").bytes)),
        ])
        let expected = RouteAnswer.Route(type: 1, index: 2, gateway: try address("fe80::1"), source: nil)
        #expect(RouteAnswer(try Bytes.single(message)) == .route(expected))
    }

    @Test("contains the source of the query")
    func asked() throws {
        let message = Bytes.route(attributes: [
            Bytes.attribute(4, Bytes.of(Int32(2))), Bytes.attribute(2, try address("192.0.2.2").bytes),
        ])
        let expected = RouteAnswer.Route(type: 1, index: 2, gateway: nil, source: try address("192.0.2.2"))
        #expect(RouteAnswer(try Bytes.single(message)) == .route(expected))
    }

    @Test("is a refusal with its error; an acknowledgement is not")
    func refusal() throws {
        #expect(RouteAnswer(try Bytes.single(Bytes.message(2, Bytes.of(Int32(-101))))) == .refused(101))
        #expect(RouteAnswer(try Bytes.single(Bytes.message(2, Bytes.of(Int32(0))))) == nil)
        #expect(RouteAnswer(try Bytes.single(Bytes.message(2, Bytes.of(Int32.min)))) == nil)
    }
}
