import FreshetEventLoop
import FreshetSignals
import Synchronization
import TestSupport
import Testing

@testable import FreshetSystemSignals

/// Real kernels, real links. Each test waits for an event of the kernel, never for a time; the time limit ends a test
/// whose event does not come.
@Suite(
    "The network according to the kernel",
    .enabled(if: NetworkBed.isAvailable, "needs root, ip(8), unshare(1) and a kernel with veth"),
    .hangLimit)
struct NetworkMonitorTests {
    @Test("a new default route makes elsewhere reachable: epoch, fact, signal, in this order")
    func defaultRoute() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            let epochs = Recorder<UInt64>()
            let monitor = try await bed.monitor { epochs.add($0) }
            let watch = monitor.watch(.elsewhere)
            #expect(watch.fact.description == "no route")
            var causes = watch.signal.causes.makeAsyncIterator()

            try await bed.ip("route add default via 192.0.2.1")
            let cause = await causes.next(isolation: nil)?.first
            #expect(cause?.first.signal == "network")
            #expect(cause?.first.detail == "reachable via 192.0.2.1 on wan0 from 192.0.2.2")
            #expect(watch.fact.isReachable && watch.fact.epoch == 1)
            #expect(epochs.values == [1])
            #expect(monitor.counts.fired == 1 && monitor.epoch == 1)
        }
    }

    @Test("the routes to all targets are asked in one datagram, and in a second one with the sources of IPv4")
    func queriesTogether() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            let addresses = try (1...40).map { try address("198.51.100.\($0)") } + [address("2001:db8::1")]
            #expect(try await bed.routes(to: addresses).datagrams == 1)
            try await bed.ip("route add default via 192.0.2.1")
            try await bed.ip("route add unreachable 198.51.100.40/32")
            let (answers, datagrams) = try await bed.routes(to: addresses)
            #expect(datagrams == 2)
            for address in addresses {
                #expect(try await bed.routes(to: [address]).answers[address] == answers[address])
            }
            let (first, last) = (try address("198.51.100.1"), try address("198.51.100.40"))
            guard case .route(let route) = answers[first], case .refused = answers[last] else {
                Issue.record("\(answers)")
                return
            }
            let (gateway, source) = (try address("192.0.2.1"), try address("192.0.2.2"))
            #expect(route.gateway == gateway && route.source == source)
            // More queries than one datagram may have.
            let many = try (1...100).map { try address("198.51.100.\($0)") }
            let all = try await bed.routes(to: many)
            #expect(all.answers.count == 100 && all.datagrams == 4)
        }
    }

    @Test("all targets have an answer if the socket's buffer is too small for all replies")
    func queriesWithSmallBuffer() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            try await bed.ip("route add default via 192.0.2.1")
            let addresses = try (1...100).map { try address("198.51.100.\($0)") }
            let usual = try await bed.routes(to: addresses)
            let small = try await bed.routes(to: addresses, receiveBuffer: 4_096)
            #expect(small.answers == usual.answers)
            #expect(small.datagrams > usual.datagrams)
        }
    }

    @Test("an epoch without an event of the kernel changes hook and facts immediately, lists again, and does not fire")
    func epochByHand() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            try await bed.ip("route add default via 192.0.2.1")
            let epochs = Recorder<UInt64>()
            let monitor = try await bed.monitor { epochs.add($0) }
            let watch = monitor.watch(.elsewhere)
            let before = watch.fact
            let listings = monitor.counts.listings
            await bed.beginEpoch(of: monitor)
            #expect(epochs.values == [1] && monitor.epoch == 1)
            #expect(watch.fact.epoch == 1 && watch.fact.changedAt > before.changedAt)
            #expect(watch.fact.since == before.since && watch.fact.isReachable)
            #expect(monitor.counts.listings == listings + 1)
            #expect(monitor.counts.fired == 0)
        }
    }

    @Test("an observer gets the fact and the firing of a change together, also if it is fired by hand")
    func observed() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            let monitor = try await bed.monitor()
            let watch = monitor.watch(.elsewhere)
            let changes = Recorder<String>()
            let observation = watch.observe { fact, cause in
                changes.add("\(fact.isReachable) \(fact.epoch) \(cause?.last.detail ?? "-")")
            }
            try await bed.ip("route add default via 192.0.2.1")
            #expect(await eventually { !changes.values.isEmpty })
            #expect(changes.values == ["true 1 reachable via 192.0.2.1 on wan0 from 192.0.2.2"])
            await bed.fire(monitor, "by hand")
            #expect(changes.values.last == "true 2 by hand")
            try await bed.ip("route del default")
            #expect(await eventually { changes.values.last == "false 2 -" })
            withExtendedLifetime(observation) {}
        }
    }

    @Test("another gateway, another source address and another link are other paths")
    func otherPaths() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            try await bed.cable("wan1", to: "far1", address: "198.51.100.2/24")
            try await bed.ip("route add default via 192.0.2.1")
            let monitor = try await bed.monitor()
            let watch = monitor.watch(.elsewhere)
            let first = watch.fact
            #expect(first.isReachable)

            try await bed.ip("route replace default via 192.0.2.9")
            var fact = try await watch.fact { $0.paths.first?.gateway?.description == "192.0.2.9" }
            #expect(fact.epoch == 1 && fact.since == first.since && fact.changedAt > first.changedAt)

            try await bed.ip("addr add 192.0.2.3/24 dev wan0")
            try await bed.ip("route replace default via 192.0.2.9 src 192.0.2.3")
            fact = try await watch.fact { $0.paths.first?.source?.description == "192.0.2.3" }
            #expect(fact.epoch == 2)

            try await bed.ip("route replace default via 198.51.100.1 dev wan1")
            fact = try await watch.fact { $0.paths.first?.interfaceName == "wan1" }
            #expect(fact.description == "via 198.51.100.1 on wan1 from 198.51.100.2")
            #expect(monitor.counts.fired == fact.epoch)
        }
    }

    @Test("a pulled cable changes the fact without a firing; plugged in again it fires")
    func carrier() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            try await bed.ip("route add default via 192.0.2.1")
            let monitor = try await bed.monitor()
            let watch = monitor.watch(.elsewhere)
            #expect(watch.fact.isReachable)

            try await bed.ip("link set far down")
            let lost = try await watch.fact { !$0.isReachable }
            #expect(lost.obstacle == .linkNotRunning("wan0") && lost.epoch == 0)
            #expect(monitor.counts.fired == 0)

            var causes = watch.signal.causes.makeAsyncIterator()
            try await bed.ip("link set far up")
            #expect(await causes.next(isolation: nil)?.first?.first.detail?.hasPrefix("reachable via") == true)
            #expect(watch.fact.epoch == 1)
        }
    }

    @Test("a removed address removes its routes, which the kernel does not report")
    func silentLoss() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            try await bed.ip("route add default via 192.0.2.1")
            let monitor = try await bed.monitor()
            let watch = monitor.watch(.elsewhere)
            #expect(watch.fact.isReachable)
            try await bed.ip("addr del 192.0.2.2/24 dev wan0")
            _ = try await watch.fact { $0.obstacle == .noRoute }
            #expect(monitor.counts.fired == 0)
        }
    }

    @Test(
        "a refusing route makes the target unreachable",
        arguments: [("unreachable", "unreachable"), ("blackhole", "blackhole"), ("prohibit", "prohibit")])
    func refusals(_ type: String, _ shown: String) async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            try await bed.ip("route add default via 192.0.2.1 metric 10")
            let monitor = try await bed.monitor()
            let watch = monitor.watch(.elsewhere)
            #expect(watch.fact.isReachable)
            try await bed.ip("route add \(type) default metric 1")
            let fact = try await watch.fact { !$0.isReachable }
            #expect(fact.obstacle == .refused(by: shown))
        }
    }

    @Test("policy rules count: the kernel is asked, not only the main table")
    func rules() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            try await bed.ip("route add default via 192.0.2.1 table 77")
            let monitor = try await bed.monitor()
            let watch = monitor.watch(.elsewhere)
            #expect(!watch.fact.isReachable)
            try await bed.ip("rule add from all lookup 77")
            _ = try await watch.fact { $0.isReachable }
            try await bed.ip("rule del from all lookup 77")
            _ = try await watch.fact { !$0.isReachable }
        }
    }

    @Test(
        "rules for the connection's source and protocol count, others do not",
        arguments: [
            ("from 192.0.2.2 prohibit", false), ("from 192.0.2.3 prohibit", true),
            ("from all ipproto tcp prohibit", false), ("from all ipproto udp prohibit", true),
        ])
    func narrowRules(_ rule: String, _ isReachable: Bool) async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            try await bed.ip("route add default via 192.0.2.1")
            try await bed.ip("rule add \(rule)")
            let watch = try await bed.monitor().watch(.elsewhere)
            #expect(watch.fact.isReachable == isReachable)
            #expect(isReachable || watch.fact.obstacle == .refused(by: "prohibit"))
        }
    }

    @Test("IPv6 that appears later is minor")
    func secondFamily() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            try await bed.ip("route add default via 192.0.2.1")
            let monitor = try await bed.monitor()
            let watch = monitor.watch(.elsewhere)
            let first = watch.fact
            try await bed.ip("addr add 2001:db8:1::2/64 dev wan0 nodad")
            try await bed.ip("-6 route add default via 2001:db8:1::1")
            let both = try await watch.fact { $0.paths.count == 2 }
            #expect(both.changedAt == first.changedAt && both.epoch == 0)
            #expect(monitor.counts.fired == 0 && monitor.counts.minor > 0)

            // The first path is removed; the second one remains.
            try await bed.ip("route del default via 192.0.2.1")
            let one = try await watch.fact { $0.paths.count == 1 }
            #expect(one.isReachable && one.epoch == 0)
            #expect(monitor.counts.fired == 0)
        }
    }

    @Test("an IPv6 address counts when duplicate address detection has ended")
    func duplicateDetection() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable(address: nil)
            let monitor = try await bed.monitor()
            let watch = monitor.watch(.elsewhere)
            try await bed.ip("addr add 2001:db8:1::2/64 dev wan0")
            try await bed.ip("-6 route add default via 2001:db8:1::1 dev wan0")
            let fact = try await watch.fact { $0.isReachable }
            #expect(fact.description == "via 2001:db8:1::1 on wan0 from 2001:db8:1::2")
            #expect(monitor.counts.fired == 1)
        }
    }

    @Test("links, addresses and bridges beside the path do not fire")
    func beside() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            try await bed.ip("route add default via 192.0.2.1")
            let monitor = try await bed.monitor()
            let watch = monitor.watch(.elsewhere)
            let first = watch.fact
            try await bed.ip("link add br0 type bridge")
            try await bed.ip("addr add 10.0.0.1/8 dev br0")
            try await bed.ip("link set br0 up")
            try await bed.ip("link add port0 type veth peer name port1")
            try await bed.ip("link set port0 master br0")
            try await bed.ip("link set port0 nomaster")
            try await bed.ip("link del br0")
            try await bed.ip("link set wan0 mtu 1400")
            // Received after all of these, so these have been received, too.
            let marker = monitor.watch(.address(try address("198.51.100.9")))
            #expect(marker.fact.isReachable)
            try await bed.ip("route add 198.51.100.9 via 192.0.2.77")
            _ = try await marker.fact { $0.paths.first?.gateway?.description == "192.0.2.77" }
            #expect(watch.fact == first)
            #expect(monitor.counts.fired == 1)
        }
    }

    @Test("each target has its own signal and fact")
    func targets() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            let monitor = try await bed.monitor()
            let near = monitor.watch(.address(try address("192.0.2.1")))
            let far = monitor.watch(.address(try address("198.51.100.9")))
            let itself = monitor.watch(.address(try address("127.0.0.1")))
            #expect(near.fact.description == "on wan0 from 192.0.2.2")
            #expect(!far.fact.isReachable)
            #expect(itself.fact.isReachable)
            var received = far.signal.causes.makeAsyncIterator()
            try await bed.ip("route add 198.51.100.9 via 192.0.2.1")
            #expect(await received.next(isolation: nil)?.first?.count == 1)
            #expect(near.fact.epoch == 0 && far.fact.epoch == 1)
            #expect(monitor.watch(.address(try address("192.0.2.1"))) === near)
        }
    }

    @Test("a link's name cannot write terminal sequences")
    func hostileName() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable("a;$(id)\u{1b}[1m")
            let monitor = try await bed.monitor()
            let watch = monitor.watch(.address(try address("192.0.2.1")))
            #expect(watch.fact.description == "on a;$(id)\\x1b[1m from 192.0.2.2")
        }
    }

    @Test("ten thousand changes into a tiny buffer end in the right state, with few firings")
    func flood() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            let monitor = try await bed.monitor(receiveBuffer: 2_048)
            let watch = monitor.watch(.elsewhere)
            let listings = monitor.counts.listings
            var lines: [String] = []
            for _ in 0..<2_500 {
                lines += [
                    "route add default via 192.0.2.1", "addr add 192.0.2.3/24 dev wan0",
                    "addr del 192.0.2.3/24 dev wan0", "route del default via 192.0.2.1",
                ]
            }
            lines += ["addr add 192.0.2.4/24 dev wan0", "route add default via 192.0.2.9 src 192.0.2.4"]
            try await bed.ipBatch(lines)
            let fact = try await watch.fact { $0.isReachable }
            #expect(fact.description == "via 192.0.2.9 on wan0 from 192.0.2.4")
            #expect(monitor.counts.listings > listings)
            #expect(monitor.counts.fired == 1)
        }
    }

    @Test("some time after the kernel's last message it is asked once more")
    func settles() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            let monitor = try await bed.monitor()
            let watch = monitor.watch(.elsewhere)
            let looks = monitor.settledLooks
            try await bed.ip("route add default via 192.0.2.1")
            _ = try await watch.fact { $0.isReachable }
            // Nothing changes any more.
            #expect(await eventually { monitor.settledLooks > looks })
            #expect(monitor.counts.fired == 1)
        }
    }

    @Test("a message of another process is ignored")
    func impostor() async throws {
        try await NetworkBed.with { bed in
            let received = try await bed.receivedFromImpostor()
            #expect(received == [.foreign, .empty])
        }
    }

    @Test("a released watch is not followed any more")
    func forgotten() async throws {
        try await NetworkBed.with { bed in
            try await bed.cable()
            let monitor = try await bed.monitor()
            let kept = monitor.watch(.elsewhere)
            do {
                let dropped = monitor.watch(.address(try address("198.51.100.9")))
                #expect(!dropped.fact.isReachable)
            }
            try await bed.ip("route add default via 192.0.2.1")
            _ = try await kept.fact { $0.isReachable }
            #expect(monitor.counts.fired == 1)
        }
    }
}

@Suite("The network without netlink")
struct MissingNetlinkTests {
    @Test("is assumed reachable, and the monitor has the reason")
    func missing() throws {
        let loop = try EventLoop()
        let monitor = NetworkMonitor(
            loop, onEpoch: { _ in },
            open: { () throws(NetlinkError) in throw NetlinkError(action: "connect to the kernel", number: 13) })
        guard case .unavailable(let reason) = monitor.availability else {
            Issue.record("netlink is not missing")
            return
        }
        #expect(reason.contains("connect to the kernel") && reason.contains("AF_NETLINK"))
        let fact = monitor.watch(.elsewhere).fact
        #expect(fact.isReachable && fact.isAssumed && fact.obstacle == nil)
        #expect(fact.description == "unknown, assumed reachable")
        #expect(monitor.counts == NetworkMonitor.Counts())
    }
}

/// Values in the order in which they were added.
final class Recorder<Value: Sendable>: Sendable {
    private let stored = Mutex<[Value]>([])
    var values: [Value] { stored.withLock { $0 } }
    func add(_ value: Value) { stored.withLock { $0.append(value) } }
}
