import Testing

@testable import FreshetSystemSignals

@Suite("IP addresses")
struct IPAddressTests {
    @Test(
        "are parsed and written",
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("255.255.255.255", "255.255.255.255"), ("2001:DB8:0:0::1", "2001:db8::1"),
            ("::", "::"), ("::1", "::1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("fe80::1", "fe80::1"),
        ])
    func roundTrip(_ text: String, _ written: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.description == written)
        #expect(IPAddress(bytes: address.bytes) == address)
        #expect(IPAddress(address.description) == address)
    }

    @Test(
        "are not made of other texts",
        arguments: ["", "example.com", "192.0.2", "192.0.2.256", "[::1]", "fe80::1%eth0", "1.2.3.4 ", "0x7f.0.0.1"])
    func refused(_ text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test("have 4 or 16 bytes", arguments: [0, 3, 5, 15, 17])
    func counts(_ count: Int) {
        #expect(IPAddress(bytes: [UInt8](repeating: 1, count: count)) == nil)
    }

    @Test("include link-local ones")
    func linkLocal() throws {
        #expect(try address("fe80::1").isIPv6LinkLocal)
        #expect(try address("febf::1").isIPv6LinkLocal)
        #expect(try !address("fec0::1").isIPv6LinkLocal)
        #expect(try !address("2001:db8::1").isIPv6LinkLocal)
        #expect(try !address("169.254.0.1").isIPv6LinkLocal)
    }
}
