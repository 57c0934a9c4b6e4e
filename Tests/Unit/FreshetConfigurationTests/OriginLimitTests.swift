import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The limits of concurrent requests")
struct OriginLimitTests {
    @Test("each origin has its own limit, 6 by default")
    func limits() {
        #expect(load([:]).daemon.requestLimits == RequestLimiter.Limits(total: 64, perOrigin: 6))
        let configured = load(["freshet.yaml": "concurrency: 9\norigin-concurrency: 9\n"])
        #expect(configured.diagnostics == [])
        #expect(configured.daemon.requestLimits == RequestLimiter.Limits(total: 9, perOrigin: 9))
    }

    @Test("an origin limit above the total limit is a warning; an invalid limit is an error")
    func errors() {
        let void = load(["freshet.yaml": "concurrency: 4\norigin-concurrency: 5\n"])
        #expect(
            void.diagnostics.map { $0.text().split(separator: "\n").first.map(String.init) } == [
                "/etc/freshet/freshet.yaml:2:21: warning: 'origin-concurrency' is greater than 'concurrency', the "
                    + "limit of all requests; make it at most 4"
            ])
        // The default of origin-concurrency is not an error.
        #expect(load(["freshet.yaml": "concurrency: 4\n"]).diagnostics == [])
        for value in ["0", "4097", "six"] {
            let invalid = load(["freshet.yaml": "origin-concurrency: \(value)\n"])
            #expect(invalid.diagnostics.map(\.keyPath) == ["origin-concurrency"], "\(value)")
            #expect(invalid.diagnostics.first?.severity == .error)
        }
    }
}
