import Testing

@testable import FreshetSystemSignals

@Suite("The change between two network snapshots")
struct NetworkChangeTests {
    private static func snapshot(_ v4: PathState?, _ v6: PathState? = nil) -> NetworkSnapshot {
        var snapshot = NetworkSnapshot()
        snapshot.states[.v4] = v4
        snapshot.states[.v6] = v6
        return snapshot
    }

    private func delta(
        _ old: (v4: PathState?, v6: PathState?), _ new: (v4: PathState?, v6: PathState?)
    ) -> NetworkChange {
        NetworkChange(from: Self.snapshot(old.v4, old.v6), to: Self.snapshot(new.v4, new.v6))
    }

    private let no = PathState.unreachable(.noRoute)
    private let down = PathState.unreachable(.linkNotRunning("wan0"))

    @Test("with one family it depends on reachability and path")
    func oneFamily() throws {
        let path = PathState.reachable(try makePath("192.0.2.1", from: "192.0.2.2"))
        let changes: [(PathState, PathState, NetworkChange)] = [
            (no, no, .nothing), (no, down, .minor), (no, path, .becameReachable), (path, no, .lost),
            (path, down, .lost), (path, path, .nothing),
            (path, .reachable(try makePath("192.0.2.9", from: "192.0.2.2")), .pathChanged),
            (path, .reachable(try makePath(nil, from: "192.0.2.2")), .pathChanged),
            (path, .reachable(try makePath("192.0.2.1", on: "wan1", index: 3, from: "192.0.2.2")), .pathChanged),
            (path, .reachable(try makePath("192.0.2.1", from: "192.0.2.3")), .pathChanged),
        ]
        for (old, new, expected) in changes {
            #expect(delta((old, nil), (new, nil)) == expected, "\(old) → \(new)")
        }
    }

    @Test("a renamed link is the same link")
    func renamed() throws {
        let old = PathState.reachable(try makePath("192.0.2.1", on: "eth0", from: "192.0.2.2"))
        let new = PathState.reachable(try makePath("192.0.2.1", on: "wan0", from: "192.0.2.2"))
        #expect(delta((old, nil), (new, nil)) == .minor)
    }

    @Test("with two families the remaining paths decide")
    func twoFamilies() throws {
        let four = PathState.reachable(try makePath("192.0.2.1", from: "192.0.2.2"))
        let other4 = PathState.reachable(try makePath("192.0.2.9", from: "192.0.2.2"))
        let six = PathState.reachable(try makePath("fe80::1", from: "2001:db8:1::2"))
        let other6 = PathState.reachable(try makePath("fe80::9", from: "2001:db8:1::2"))
        #expect(delta((no, no), (four, six)) == .becameReachable)
        #expect(delta((four, six), (no, no)) == .lost)
        #expect(delta((four, no), (four, six)) == .minor)
        #expect(delta((four, six), (four, no)) == .minor)
        #expect(delta((four, six), (no, six)) == .minor)
        #expect(delta((four, no), (no, six)) == .pathChanged)
        #expect(delta((four, six), (other4, six)) == .pathChanged)
        #expect(delta((four, six), (four, other6)) == .pathChanged)
        #expect(delta((four, six), (other4, no)) == .pathChanged)
        #expect(delta((four, no), (four, down)) == .minor)
    }
}

@Suite("The evaluation of a reply")
struct PathStateTests {
    private func tables(flags: UInt32 = 0x1_1043, addresses: [(String, UInt32)] = []) throws -> KernelTables {
        var tables = KernelTables()
        tables.apply(.link(index: 2, Link(name: Array("wan0".utf8), flags: flags)))
        for (text, flags) in addresses {
            tables.apply(.address(LocalAddress(index: 2, address: try address(text)), flags: flags))
        }
        return tables
    }

    private func judge(
        type: UInt8 = 1, index: Int32? = 2, source: String?, to destination: String = "2001:db8::1",
        _ tables: KernelTables
    ) throws -> PathState? {
        let route = RouteAnswer.Route(
            type: type, index: index, gateway: try address("fe80::1"), source: try source.map(address))
        return PathState(.route(route), to: try address(destination), tables: tables)
    }

    @Test("a unicast route on a running link with a source address is a path")
    func reachable() throws {
        let state = try judge(source: "2001:db8:1::2", tables(addresses: [("2001:db8:1::2", 0x80)]))
        #expect(state == .reachable(try makePath("fe80::1", from: "2001:db8:1::2")))
        #expect(state?.path?.description == "via fe80::1 on wan0 from 2001:db8:1::2")
    }

    @Test("a route to this machine itself is a path, too")
    func local() throws {
        #expect(try judge(type: 2, source: "2001:db8:1::2", tables())?.path != nil)
    }

    @Test(
        "any other type of route is unreachable",
        arguments: [(0, "0"), (3, "broadcast"), (6, "blackhole"), (7, "unreachable"), (8, "prohibit"), (9, "throw")])
    func types(_ type: UInt8, _ name: String) throws {
        #expect(try judge(type: type, source: "2001:db8:1::2", tables()) == .unreachable(.refused(by: name)))
    }

    @Test("a link that is only up is unreachable, and so is an unknown link")
    func links() throws {
        // IFF_UP 1, IFF_RUNNING 0x40
        #expect(try judge(source: "2001:db8:1::2", tables(flags: 0x1)) == .unreachable(.linkNotRunning("wan0")))
        #expect(try judge(source: "2001:db8:1::2", tables(flags: 0x40)) == .unreachable(.linkNotRunning("wan0")))
        #expect(
            try judge(index: 9, source: "2001:db8:1::2", tables()) == .unreachable(.linkNotRunning("link 9")))
        #expect(try judge(index: nil, source: "2001:db8:1::2", tables()) == .unreachable(.noRoute))
    }

    @Test(
        "a source address that may not be used yet is unreachable",
        arguments: [
            (0x40, false), (0x08, false), (0x48, false), (0x44, true), (0x20, true), (0x80, true), (0x4c, false),
        ])
    func sources(_ flags: UInt32, _ isUsable: Bool) throws {
        // IFA_F_OPTIMISTIC 4, DADFAILED 8, DEPRECATED 0x20, TENTATIVE 0x40, PERMANENT 0x80
        let state = try judge(source: "2001:db8:1::2", tables(addresses: [("2001:db8:1::2", flags)]))
        #expect((state?.path != nil) == isUsable)
        if !isUsable { #expect(state == .unreachable(.noSourceAddress(interface: "wan0"))) }
    }

    @Test("an address that is usable on another link is usable")
    func otherLink() throws {
        var tables = try tables(addresses: [("2001:db8:1::2", 0x40)])
        tables.apply(.address(LocalAddress(index: 3, address: try address("2001:db8:1::2")), flags: 0x80))
        #expect(try judge(source: "2001:db8:1::2", tables)?.path != nil)
        tables.apply(.link(index: 3, nil))
        #expect(try judge(source: "2001:db8:1::2", tables)?.path == nil)
    }

    @Test("a link-local source only reaches its link")
    func linkLocal() throws {
        #expect(try judge(source: "fe80::2", tables())?.path == nil)
        #expect(try judge(source: "fe80::2", to: "fe80::1", tables())?.path != nil)
        #expect(try judge(source: nil, tables())?.path == nil)
    }

    @Test("a loopback source only reaches this machine")
    func loopback() throws {
        #expect(try judge(source: "::1", tables())?.path == nil)
        #expect(try judge(type: 2, source: "::1", to: "::1", tables())?.path != nil)
        #expect(try judge(source: "127.0.0.1", to: "203.0.113.1", tables())?.path == nil)
        #expect(try judge(type: 2, source: "127.0.0.1", to: "127.0.0.53", tables())?.path != nil)
    }

    @Test(
        "the kernel's errors determine the reason",
        arguments: [
            (Int32(101), UnreachableReason.noRoute), (113, .refused(by: "unreachable")),
            (22, .refused(by: "blackhole")),
            (13, .refused(by: "prohibit")), (95, .unknown(errno: 95)),
        ])
    func errors(_ number: Int32, _ obstacle: UnreachableReason) throws {
        let state = PathState(.refused(number), to: try address("203.0.113.1"), tables: KernelTables())
        #expect(state == .unreachable(obstacle))
        #expect(!obstacle.description.isEmpty)
    }

    @Test("a missing reply has no state")
    func unanswered() throws {
        #expect(PathState(.unanswered(11), to: try address("203.0.113.1"), tables: KernelTables()) == nil)
    }

    @Test("a link's name is escaped")
    func names() {
        #expect(InterfaceName.shown(Array("wan0".utf8)) == "wan0")
        #expect(InterfaceName.shown(Array("a;$(id)".utf8)) == "a;$(id)")
        #expect(InterfaceName.shown([0x1b, 0x5b, 0x31, 0x6d]) == "\\x1b[1m")
        #expect(InterfaceName.shown([0x61, 0x0a, 0x5c, 0x7f, 0xc3, 0xa9]) == "a\\x0a\\x5c\\x7f\\xc3\\xa9")
    }
}
