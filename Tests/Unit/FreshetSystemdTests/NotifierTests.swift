import Glibc
import TestSupport
import Testing

@testable import FreshetSystemd

@Suite("Notifier")
struct NotifierTests {
    @Test("without NOTIFY_SOCKET nothing is sent and nothing fails")
    func silent() {
        let notifier = Notifier(environment: [:])
        #expect(!notifier.isConnected)
        #expect(!notifier.ready())
        #expect(!notifier.stopping())
    }

    @Test("each call is one datagram")
    func datagrams() throws {
        let manager = try ScriptedManager()
        let notifier = Notifier(environment: ["NOTIFY_SOCKET": manager.address])
        #expect(notifier.isConnected)
        #expect(notifier.ready(status: "3 pipelines"))
        #expect(manager.receive() == "READY=1\nSTATUS=3 pipelines")
        #expect(notifier.stopping())
        #expect(manager.receive() == "STOPPING=1")
        #expect(notifier.status("loading jwks"))
        #expect(manager.receive() == "STATUS=loading jwks")
        #expect(notifier.watchdog())
        #expect(manager.receive() == "WATCHDOG=1")
    }

    @Test("a reload has its monotonic instant in the same datagram")
    func reload() throws {
        let manager = try ScriptedManager()
        let notifier = Notifier(environment: ["NOTIFY_SOCKET": manager.address])
        #expect(notifier.reloading(atMicroseconds: 1_234_567, status: nil))
        #expect(manager.receive() == "RELOADING=1\nMONOTONIC_USEC=1234567")
        #expect(notifier.reloading())
        let lines = try #require(manager.receive()).split(separator: "\n")
        #expect(lines.count == 2)
        let stamp = try #require(lines.last?.split(separator: "=").last.flatMap { UInt64($0) })
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        // An instant of this boot's monotonic clock, not of the wall clock.
        #expect(stamp <= UInt64(now.tv_sec + 1) * 1_000_000)
    }

    @Test("a status cannot add another assignment")
    func injection() throws {
        let manager = try ScriptedManager()
        let notifier = Notifier(environment: ["NOTIFY_SOCKET": manager.address])
        notifier.status("a\nWATCHDOG=trigger")
        #expect(manager.receive() == "STATUS=a\\nWATCHDOG=trigger")
    }

    @Test("a status is truncated at its limit, between characters")
    func statusLimit() throws {
        let manager = try ScriptedManager()
        let notifier = Notifier(environment: ["NOTIFY_SOCKET": manager.address])
        let fits = String(repeating: "a", count: Notifier.statusLimit)
        notifier.status(fits)
        #expect(manager.receive() == "STATUS=" + fits)
        notifier.status(String(repeating: "é", count: Notifier.statusLimit))
        let cut = try #require(manager.receive()).dropFirst("STATUS=".count)
        #expect(cut.utf8.count <= Notifier.statusLimit)
        #expect(cut.hasSuffix("é…"))
    }

    @Test(
        "an address that is not a Unix address is ignored",
        arguments: ["", "relative", "@", "/", "vsock:2:1", "/" + String(repeating: "x", count: 200)])
    func otherAddresses(_ address: String) {
        #expect(!Notifier(environment: ["NOTIFY_SOCKET": address]).isConnected)
    }
}
