import Testing

@testable import FreshetConfiguration

@Suite("The memory budget")
struct MemoryLimitTests {
    private func daemon(_ text: String) -> Configuration { load(["freshet.yaml": "memory: \(text)\n"]) }

    @Test("the default budget is 512 MiB")
    func values() {
        #expect(load([:]).daemon.memoryLimit == 512 << 20)
        #expect(daemon("{max: 64M}").daemon.memoryLimit == 64 << 20)
        #expect(daemon("{max: 4G}").diagnostics == [])
    }

    @Test(
        "an invalid budget is an error at its location",
        arguments: [
            ("{max: 32M}", "1:15: error: 'max' has to be at least 64M"),
            ("{max: infinity}", "1:15: error: 'max' "),
            ("{min: 64M}", "1:10: error: unknown key 'min'"),
            ("512M", "1:9: error: 'memory' has to contain keys with values, not text; its keys are max"),
        ])
    func errors(text: String, expected: String) {
        let diagnostics = daemon(text).diagnostics
        #expect(diagnostics.count == 1)
        let first = diagnostics.first?.text() ?? ""
        #expect(first.hasPrefix("/etc/freshet/freshet.yaml:" + expected), "\(first)")
    }
}
