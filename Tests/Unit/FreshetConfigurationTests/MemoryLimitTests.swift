import Testing

@testable import FreshetConfiguration

@Suite("The limit on memory")
struct MemoryLimitTests {
    private func daemon(_ text: String) -> Configuration { load(["freshet.yaml": "memory: \(text)\n"]) }

    @Test("is 512 MiB unless configured")
    func values() {
        #expect(load([:]).daemon.memoryLimit == 512 << 20)
        #expect(daemon("{max: 64M}").daemon.memoryLimit == 64 << 20)
        #expect(daemon("{max: 4G}").diagnostics == [])
    }

    @Test(
        "that makes no sense is an error at its place",
        arguments: [
            ("{max: 32M}", "1:15: error: 'max' has to be at least 64M"),
            ("{max: infinity}", "1:15: error: 'max' "),
            ("{min: 64M}", "1:10: error: unknown key 'min'"),
            ("512M", "1:9: error: 'memory' has to hold keys with values, not text; its keys are max"),
        ])
    func faults(text: String, expected: String) {
        let diagnostics = daemon(text).diagnostics
        #expect(diagnostics.count == 1)
        let first = diagnostics.first?.text() ?? ""
        #expect(first.hasPrefix("/etc/freshet/freshet.yaml:" + expected), "\(first)")
    }
}
