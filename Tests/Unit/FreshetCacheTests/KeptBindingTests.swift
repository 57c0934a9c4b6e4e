import Testing

@testable import FreshetCache

@Suite("The binding of validators in memory") struct KeptBindingTests {
    @Test(
        "hexadecimal digits without leading zeros are a number",
        arguments: [
            "1", "f", "6c62272e07bb014262b821756295c58d", "ffffffffffffffffffffffffffffffff", "10000000000000000",
        ])
    func hashes(text: String) {
        guard case .hash(let high, let low) = KeptBinding(text) else {
            Issue.record("\(text) is kept as a text")
            return
        }
        #expect(String(UInt128(high) << 64 | UInt128(low), radix: 16) == text)
    }

    @Test("all other texts are kept, and no two different texts are equal")
    func texts() {
        let texts = [
            "", "0", "01", "1", "F", "f", "https://example.com", "100000000000000000000000000000000", "f ", "/", ":",
            "`",
            "g", "10", "1\u{0}",
        ]
        #expect(Set(texts.map(KeptBinding.init)).count == texts.count)
        for text in texts where text != "1" && text != "f" && text != "10" {
            #expect(KeptBinding(text) == .text(text))
        }
    }
}
