import Glibc
import TestSupport
import Testing

@testable import FreshetSystemSignals

/// A kernel's messages, recorded by `Tests/Support/Netlink/record`.
private struct Recording {
    struct Line {
        var name: String
        var datagram: [UInt8]
    }

    var lines: [Line] = []

    init() throws {
        let root = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined()
        let file = try #require(fopen(root + "/Tests/Support/Netlink/recorded.txt", "re"))
        defer { fclose(file) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { text += buffer[..<count] }
        for line in text.split(separator: UInt8(ascii: "\n")) where line.first != UInt8(ascii: "#") {
            let end = try #require(line.lastIndex(of: UInt8(ascii: ":")))
            let name = String(decoding: line[..<end], as: UTF8.self)
            lines.append(Line(name: name, datagram: try Self.bytes(line[(end + 2)...])))
        }
        try #require(lines.count > 50)
    }

    private static func bytes(_ hexadecimal: ArraySlice<UInt8>) throws -> [UInt8] {
        try stride(from: hexadecimal.startIndex, to: hexadecimal.endIndex, by: 2).map { index in
            let digits = String(decoding: hexadecimal[index..<(index + 2)], as: UTF8.self)
            return try #require(UInt8(digits, radix: 16))
        }
    }

    /// The datagrams with this name, in order.
    func datagrams(_ name: String) throws -> [[UInt8]] {
        let found = lines.filter { $0.name == name }.map(\.datagram)
        try #require(!found.isEmpty, "nothing was recorded by this name: \(name)")
        return found
    }

    func messages(_ name: String) throws -> [NetlinkMessage] {
        try datagrams(name).flatMap { datagram in
            let (messages, isWhole) = NetlinkMessage.split(datagram)
            try #require(isWhole)
            return messages
        }
    }

    /// The relevant events of a command.
    func events(_ command: String) throws -> [RoutingEvent] {
        try messages("heard \(command)").compactMap(RoutingEvent.init)
    }

    /// The kernel's reply for a target: the one at `index`.
    func answer(to target: String, _ index: Int = 0) throws -> RouteAnswer {
        try #require(RouteAnswer(messages("route \(target)")[index]))
    }
}

@Suite("Recorded netlink messages")
struct RecordedNetlinkTests {
    private let recording: Recording

    init() throws { recording = try Recording() }

    private func route(
        type: UInt8 = 1, index: Int32 = 3, gateway: String? = nil, source: String
    ) throws -> RouteAnswer {
        .route(
            RouteAnswer.Route(type: type, index: index, gateway: try gateway.map(address), source: try address(source)))
    }

    @Test("are whole, and each of them is understood")
    func all() {
        for line in recording.lines {
            let (messages, isWhole) = NetlinkMessage.split(line.datagram)
            #expect(isWhole && !messages.isEmpty, "\(line.name)")
            for message in messages where line.name.hasPrefix("heard") && message.payload.first != UInt8(AF_BRIDGE) {
                #expect(RoutingEvent(message) != nil, "\(line.name): type \(message.type)")
            }
        }
    }

    @Test("of a list give tables of all links and addresses")
    func lists() throws {
        var tables = KernelTables()
        for name in ["list links", "list addresses"] {
            let messages = try recording.messages(name)
            let last = try #require(messages.last)
            #expect(last.type == 3 && last.errorNumber == 0)  // NLMSG_DONE
            for message in messages {
                #expect(!message.isInterruptedDump && message.sequence == 7)
                if let event = RoutingEvent(message) { tables.apply(event) }
            }
        }
        let names = tables.links.mapValues { InterfaceName.shown($0.name) }
        #expect(names == [1: "lo", 2: "far0", 3: "wan0", 4: "br0", 5: "port1", 6: "port0"])
        #expect(Set(tables.links.filter { $0.value.isRunning }.keys) == [1, 2, 3])

        let own = Set(tables.addresses.filter { $0.value[3] != nil }.keys.filter { !$0.isIPv6LinkLocal })
        // Of the point-to-point link, the address on this side.
        #expect(own == Set(try ["192.0.2.2", "10.0.0.1", "2001:db8:1::2", "2001:db8:1::3"].map(address)))
        let tentative = UInt32(0x40)  // IFA_F_TENTATIVE
        #expect(try #require(tables.addresses[address("2001:db8:1::2")]?[3]) & tentative != 0)
        #expect(try #require(tables.addresses[address("2001:db8:1::3")]?[3]) & tentative == 0)
        #expect(Set(try #require(tables.addresses[address("127.0.0.1")]).keys) == [1])
    }

    @Test("of a route contain its link, its router and its source, or a refusal")
    func answers() throws {
        #expect(try recording.answer(to: "203.0.113.1") == route(gateway: "192.0.2.1", source: "192.0.2.2"))
        let hop = try recording.answer(to: "198.51.100.7")
        #expect(
            try ["192.0.2.1", "192.0.2.9"].map { try route(gateway: $0, source: "192.0.2.2") }.contains(hop), "\(hop)")
        #expect(try recording.answer(to: "198.18.0.7") == route(gateway: "fe80::1", source: "192.0.2.2"))
        #expect(try recording.answer(to: "192.0.2.1") == route(source: "192.0.2.2"))
        #expect(try recording.answer(to: "127.0.0.1") == route(type: 2, index: 1, source: "127.0.0.1"))
        #expect(try recording.answer(to: "2001:db8::1") == route(gateway: "2001:db8:1::1", source: "2001:db8:1::3"))
        #expect(try recording.answer(to: "2001:db8:9::1") == .refused(EACCES))
        #expect(try recording.answer(to: "203.0.113.1", 1) == .refused(ENETUNREACH))
    }

    @Test("of links contain name and removal; a port that leaves a bridge is not a removed link")
    func links() throws {
        let added = try recording.events("link add name wan0 type veth peer name far0")
        #expect(added.map(\.linkName) == ["far0", "wan0"])
        guard case .link(3, let down?) = try recording.events("link set wan0 down").first else {
            Issue.record("there is no event of wan0")
            return
        }
        #expect(!down.isRunning)
        let left = try recording.events("link set port0 nomaster")
        #expect(left.allSatisfy { $0.linkName != nil }, "\(left)")
        #expect(try recording.messages("heard link set port0 nomaster").contains { $0.type == 17 })  // RTM_DELLINK
        #expect(try recording.events("link set br0 name bridge7").contains { $0.linkName == "bridge7" })
        #expect(try recording.events("link del bridge7").last == .link(index: 4, nil))
        #expect(try recording.events("link del wan0").contains(.link(index: 3, nil)))
        // An alternative name, in its own attribute, is not the name.
        let named = "link property add dev wan0 altname uplink-to-the-world"
        #expect(try recording.events(named).map(\.linkName) == ["wan0"])
    }

    @Test("of addresses contain the flags; a renewed address is not a change")
    func addresses() throws {
        let lasting = UInt32(0x80)  // IFA_F_PERMANENT
        let peer = try recording.events("addr add 10.0.0.1 peer 10.0.0.9/32 dev wan0")
        #expect(peer.first == .address(LocalAddress(index: 3, address: try address("10.0.0.1")), flags: lasting))
        #expect(peer.dropFirst().allSatisfy { $0 == .routing })
        let gone = try recording.events("addr del 192.0.2.2/24 dev wan0")
        #expect(gone.first == .address(LocalAddress(index: 3, address: try address("192.0.2.2")), flags: nil))

        var tables = KernelTables()
        let lifetimes = ["add": "900 preferred_lft 300", "change": "901 preferred_lft 301"]
        var changes: [String: Bool] = [:]
        for verb in ["add", "change"] {
            let command = "addr \(verb) 2001:db8:1::3/64 dev wan0 nodad valid_lft \(lifetimes[verb] ?? "")"
            for event in try recording.events(command) where event != .routing { changes[verb] = tables.apply(event) }
        }
        #expect(changes == ["add": true, "change": false])
    }

    @Test(
        "of routes, rules and next hops report a change",
        arguments: [
            "route add default via 192.0.2.1", "route del default via 192.0.2.1",
            "route add 198.51.100.0/24 nexthop via 192.0.2.1 weight 1 nexthop via 192.0.2.9 weight 3",
            "-6 route add prohibit 2001:db8:9::/48", "rule add from 192.0.2.2 fwmark 7 lookup 77",
            "-6 rule add to 2001:db8:8::/48 prohibit", "nexthop add id 1 via 192.0.2.1 dev wan0", "nexthop del id 1",
        ])
    func routing(_ command: String) throws {
        #expect(try recording.events(command).contains(.routing))
    }

    @Test("that are truncated give whole messages only")
    func truncated() throws {
        for line in recording.lines {
            let whole = NetlinkMessage.split(line.datagram).messages
            var ends: [Int] = []
            for message in whole { ends.append((ends.last ?? 0) + NetlinkMessage.aligned(message.payload.count + 16)) }
            for count in stride(from: 0, to: line.datagram.count, by: 3) {
                let (messages, isWhole) = NetlinkMessage.split(Array(line.datagram.prefix(count)))
                let expected = ends.prefix { $0 <= count }.count
                #expect(messages.count == expected && isWhole == (count == 0 || ends.contains(count)))
                #expect(zip(messages, whole).allSatisfy { $0.payload.elementsEqual($1.payload) })
            }
        }
    }

    @Test("truncated within an attribute are read up to that attribute")
    func truncatedPayload() throws {
        for line in recording.lines {
            for message in NetlinkMessage.split(line.datagram).messages {
                for count in stride(from: 0, to: message.payload.count, by: 5) {
                    var cut = message
                    cut.payload = message.payload.prefix(count)
                    inspect(cut)
                }
            }
        }
    }

    @Test("that were changed at random are refused or read, and never beyond their end", arguments: [1, 2, 3, 4])
    func mutated(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var messages = 0
        for round in 0..<4_000 {
            var datagram = recording.lines[round % recording.lines.count].datagram
            if random.next() % 4 == 0, let other = recording.lines.randomElement(using: &random)?.datagram {
                let place = Int.random(in: 0...datagram.count, using: &random)
                let rest = other.dropFirst(Int.random(in: 0...other.count, using: &random))
                datagram = Array(datagram.prefix(place)) + rest
            }
            for _ in 0..<Int.random(in: 1...8, using: &random) where !datagram.isEmpty {
                // Mostly near the beginning, which has the lengths and the fixed parts.
                let reach = random.next() % 2 == 0 ? min(datagram.count, 96) : datagram.count
                let place = Int.random(in: 0..<reach, using: &random)
                datagram[place] =
                    [0, 1, 4, 15, 16, 17, 0x7f, 0x80, 0xff, UInt8.random(in: 0...255, using: &random)]
                    .randomElement(using: &random) ?? 0
            }
            if random.next() % 4 == 0 { datagram.removeLast(Int.random(in: 0...datagram.count, using: &random)) }
            let parts = NetlinkMessage.split(datagram).messages
            #expect(parts.reduce(0) { $0 + $1.payload.count + 16 } <= datagram.count)
            for part in parts { inspect(part) }
            messages += parts.count

            var tables = KernelTables()
            var waiting = [datagram]
            let followed = tables.follow(limit: 2) { waiting.popLast().map { .datagram($0) } ?? .empty }
            #expect(followed.count == 1 && followed.failure == nil)
        }
        // Most mutated datagrams still contain a message; otherwise only headers would be tested.
        #expect(messages > 2_000)
    }

    /// Reads a message in every way, and checks that the results were in the message.
    private func inspect(_ message: NetlinkMessage) {
        for attribute in NetlinkAttributes(message.payload) {
            #expect(attribute.value.endIndex <= message.payload.endIndex)
        }
        if case .link(_, let link?) = RoutingEvent(message) {
            #expect(link.name.count <= message.payload.count)
            #expect(InterfaceName.shown(link.name).utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f })
        }
        guard let answer = RouteAnswer(message) else { return }
        for target in NetworkTarget.elsewhere.addresses { _ = PathState(answer, to: target, tables: KernelTables()) }
        if case .refused(let number) = answer { #expect((1...4_095).contains(number)) }
    }
}

extension RoutingEvent {
    /// The name of a link that exists.
    fileprivate var linkName: String? {
        guard case .link(_, let link?) = self else { return nil }
        return InterfaceName.shown(link.name)
    }
}
