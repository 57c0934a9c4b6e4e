import Testing

@testable import FreshetSystemSignals

@Suite("The kernel's tables")
struct KernelTablesTests {
    private let failure = NetlinkError(action: "receive", number: 3)

    /// Returns one result after the other, then reports that there are no more.
    private func follow(
        _ received: [NetlinkSocket.Received], limit: Int = 100, into tables: inout KernelTables
    ) -> KernelTables.Followed {
        var rest = received[...]
        return tables.follow(limit: limit) { rest.popFirst() ?? .empty }
    }

    private func link(_ index: Int32, type: UInt16 = 16) -> NetlinkSocket.Received {
        .datagram(Bytes.link(type, index: index, flags: 0x41, name: Array("wan\(index)".utf8)))
    }

    @Test("apply the kernel's messages, and ignore messages of other senders")
    func following() {
        var tables = KernelTables()
        let followed = follow([link(2), .foreign, link(3), link(2, type: 17)], into: &tables)
        #expect(followed == KernelTables.Followed(hasChanges: true, count: 4))
        #expect(tables.links.keys.sorted() == [3])
    }

    @Test("have gaps after lost messages and after broken ones; whole messages count")
    func gaps() {
        var tables = KernelTables()
        let lost = follow([.overrun, link(2)], into: &tables)
        #expect(lost.hasGaps)
        #expect(tables.links[2] != nil)
        let broken = Bytes.link(index: 4, flags: 1, name: [0x61]) + [1, 2, 3]
        let cut = follow([.datagram(broken), link(5)], into: &tables)
        #expect(cut.hasGaps)
        #expect(tables.links.keys.sorted() == [2, 4, 5])
    }

    @Test("do not change for known facts: a renewed lifetime, another MTU")
    func renewals() throws {
        let own = try address("192.0.2.2")
        func addressed(_ type: UInt16 = 20, flags: UInt8 = 0x80) -> NetlinkSocket.Received {
            .datagram(
                Bytes.address(type, family: 2, flags: flags, index: 2, attributes: [Bytes.attribute(2, own.bytes)]))
        }
        var tables = KernelTables()
        #expect(follow([link(2), addressed()], into: &tables).hasChanges)
        #expect(!follow([link(2), addressed(), .foreign], into: &tables).hasChanges)
        #expect(follow([addressed(flags: 0xa0)], into: &tables).hasChanges)
        // One address may exist twice, with two prefixes: each deletion is a change.
        #expect(follow([addressed(21)], into: &tables).hasChanges)
        #expect(follow([addressed(21)], into: &tables).hasChanges)
        #expect(follow([.datagram(Bytes.message(24, []))], into: &tables).hasChanges)
        #expect(follow([link(2, type: 17)], into: &tables).hasChanges)
    }

    @Test("stop at a failure")
    func failing() {
        var tables = KernelTables()
        let followed = follow([link(2), .failed(failure), link(3)], into: &tables)
        #expect(followed.failure == failure)
        #expect(tables.links.keys.sorted() == [2])
    }

    @Test("read a limited number of datagrams, and leave the rest for the next iteration")
    func limit() {
        var tables = KernelTables()
        let flood = (1...10).map { link($0) }
        let whole = follow(flood, limit: 10, into: &tables)
        #expect(whole.count == 10)
        #expect(tables.links.count == 10)
        tables = KernelTables()
        let part = follow(flood, limit: 9, into: &tables)
        #expect(part == KernelTables.Followed(hasChanges: true, count: 9))
        #expect(tables.links.count == 9)
    }

    @Test("are listed again if the list was interrupted, up to the limit")
    func listing() {
        var whole = KernelTables()
        whole.apply(.link(index: 2, Link(name: [], flags: 0)))
        var tables = KernelTables()
        var lists: [KernelTables?] = [nil, nil, whole]
        let third = tables.list(limit: 3) { lists.removeFirst() }
        #expect(third == (3, true))
        #expect(tables == whole)
        lists = [nil, nil, KernelTables()]
        let never = tables.list(limit: 2) { lists.removeFirst() }
        #expect(never == (2, false))
        #expect(tables == whole)
        let failing = tables.list(limit: 2) { () throws(NetlinkError) in throw failure }
        #expect(failing == (2, false))
    }

    @Test("remove the addresses of a removed link")
    func goneLink() throws {
        var tables = KernelTables()
        let shared = try address("2001:db8::2"), alone = try address("192.0.2.2")
        tables.apply(.address(LocalAddress(index: 2, address: shared), flags: 1))
        tables.apply(.address(LocalAddress(index: 3, address: shared), flags: 2))
        tables.apply(.address(LocalAddress(index: 2, address: alone), flags: 3))
        tables.apply(.link(index: 2, nil))
        #expect(tables.addresses == [shared: [3: 2]])
        tables.apply(.address(LocalAddress(index: 3, address: shared), flags: nil))
        #expect(tables.addresses.isEmpty)
    }
}
