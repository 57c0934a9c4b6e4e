import Testing

@testable import FreshetEmitters

@Suite("HTTP redirects: allowed addresses")
struct RedirectReachTests {
    /// 203.0.113.2 and 2001:db8::2 are the primary addresses of an interface, 203.0.113.3 is a secondary one.
    static let own = OwnAddresses(["127.0.0.1", "::1", "203.0.113.2", "203.0.113.3", "10.0.0.2", "2001:db8::2"])
    static let internet = RedirectReach.Ends(remote: "198.51.100.1", local: "203.0.113.2")

    private func refusal(
        from first: RedirectReach.Ends = internet, to remote: String, local: String = "203.0.113.2",
        own: @autoclosure () -> OwnAddresses = own
    ) -> AddressClass? {
        var reach = RedirectReach()
        #expect(reach.refusal(of: first, own: own) == nil)
        return reach.refusal(of: RedirectReach.Ends(remote: remote, local: local), own: own)
    }

    @Test(
        "a redirect from another machine must not lead to an address of this machine",
        arguments: [
            ("203.0.113.2", "203.0.113.2"), ("203.0.113.3", "203.0.113.2"), ("2001:db8::2", "2001:db8::2"),
            ("::ffff:203.0.113.2", "::ffff:203.0.113.2"), ("64:ff9b::cb00:7102", "2001:db8::2"),
            ("2002:cb00:7102::1", "2001:db8::2"), ("127.0.0.1", "127.0.0.1"),
        ])
    func here(_ remote: String, _ local: String) {
        #expect(refusal(to: remote, local: local) == .machine)
        let network = RedirectReach.Ends(remote: "10.0.0.1", local: "10.0.0.2")
        #expect(refusal(from: network, to: remote, local: local) == .machine)
    }

    @Test("a connection with two equal addresses is on this machine, even if the kernel does not list its addresses")
    func equal() {
        #expect(refusal(to: "203.0.113.9", local: "203.0.113.9", own: OwnAddresses([])) == .machine)
    }

    @Test("a redirect may lead to another machine, and from this machine to this machine")
    func elsewhere() {
        #expect(refusal(to: "198.51.100.2") == nil && refusal(to: "198.51.100.1") == nil)
        #expect(refusal(to: "10.0.0.1", local: "10.0.0.2") == .network)
        for address in ["127.0.0.1", "203.0.113.2"] {
            let here = RedirectReach.Ends(remote: address, local: address)
            #expect(refusal(from: here, to: "203.0.113.3") == nil && refusal(from: here, to: "198.51.100.2") == nil)
        }
        let here = RedirectReach.Ends(remote: "203.0.113.2", local: "203.0.113.2")
        // Services may treat clients from a public address of this machine differently from clients on loopback.
        #expect(refusal(from: here, to: "127.0.0.1", local: "127.0.0.1") == .machine)
    }

    @Test("the kernel lists the addresses of this machine")
    func now() {
        let own = OwnAddresses.now()
        #expect(own.contains("127.0.0.1") && own.contains("::ffff:127.0.0.1"))
        #expect(!own.contains("198.51.100.1") && !own.contains("") && !own.contains("/run/socket"))
    }
}
