import Testing

@testable import FreshetConfiguration

@Suite("The disk quota of the cache")
struct CacheQuotaTests {
    private func daemon(_ text: String) -> Configuration { load(["freshet.yaml": "cache: \(text)\n"]) }

    @Test("the default quota is 1 GiB, with 5 % or 256 MiB free")
    func values() {
        #expect(load([:]).daemon.cacheLimit == 1 << 30)
        #expect(load([:]).daemon.minFree == .standard)
        let configured = daemon("{max-total: 4G, min-free: 10%}")
        #expect(configured.diagnostics == [])
        #expect(configured.daemon.cacheLimit == 4 << 30)
        #expect(configured.daemon.minFree == .percent(10))
        #expect(daemon("{max-total: infinity, min-free: 0}").daemon.cacheLimit == nil)
        #expect(daemon("{min-free: 0}").daemon.minFree == .bytes(0))
        #expect(daemon("{min-free: 512M}").daemon.minFree == .bytes(512 << 20))
        #expect(daemon("{min-free: 99%}").daemon.minFree == .percent(99))
        #expect(daemon("{max-total: 1M}").daemon.cacheLimit == 1 << 20)
    }

    @Test(
        "an invalid quota is an error at its location, with the remedy",
        arguments: [
            ("{max-total: 1048575}", "1:20: error: 'max-total' has to be at least 1M"),
            ("{max-total: 5%}", "1:20: error: 'max-total' has the unknown size unit '%'"),
            ("{max-total: 1GB}", "1:20: error: 'max-total' has the unknown size unit 'GB'"),
            (
                "{min-free: 100%}",
                "1:19: error: 'min-free' has to be a size, or a percentage from 0% to 99%, not '100%'"
            ),
            (
                "{min-free: 1.5%}",
                "1:19: error: 'min-free' has to be a size, or a percentage from 0% to 99%, not '1.5%'"
            ),
            ("{min-free: infinity}", "1:19: error: 'min-free' "),
            ("{max-totl: 1G}", "1:9: error: unknown key 'max-totl'; did you mean 'max-total'?"),
            ("{keep: 3}", "1:9: error: 'keep' belongs in a pipeline's own file, below 'cache'; move it there"),
            ("1G", "1:8: error: 'cache' has to contain keys with values, not text; its keys are max-total, min-free"),
        ])
    func errors(text: String, expected: String) {
        let configuration = daemon(text)
        #expect(configuration.diagnostics.count == 1)
        let found = configuration.diagnostics.first?.text() ?? ""
        #expect(found.hasPrefix("/etc/freshet/freshet.yaml:" + expected), "\(found)")
    }

    @Test("the quota belongs in the daemon's file")
    func place() {
        let configuration = load(pipeline: "source: {file: /x}\ncache: {file: x, max-total: 1G}\n")
        #expect(
            configuration.diagnostics.map(\.message) == ["'max-total' belongs in freshet.yaml, below 'cache'"])
    }
}
