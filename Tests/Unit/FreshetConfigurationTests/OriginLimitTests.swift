import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The limits of requests at once")
struct OriginLimitTests {
    @Test("Each origin has its own, six unless configured")
    func limits() {
        #expect(load([:]).daemon.requestLimits == RequestLimiter.Limits(total: 64, perOrigin: 6))
        let configured = load(["freshet.yaml": "concurrency: 9\norigin-concurrency: 9\n"])
        #expect(configured.diagnostics == [])
        #expect(configured.daemon.requestLimits == RequestLimiter.Limits(total: 9, perOrigin: 9))
    }

    @Test("A limit of an origin that the limit of all makes void is a warning; a faulty one is an error")
    func faults() {
        let void = load(["freshet.yaml": "concurrency: 4\norigin-concurrency: 5\n"])
        #expect(
            void.diagnostics.map { $0.text().split(separator: "\n").first.map(String.init) } == [
                "/etc/freshet/freshet.yaml:2:21: warning: 'origin-concurrency' is more than 'concurrency', which has "
                    + "the last word; make it at most 4"
            ])
        // The default gives way.
        #expect(load(["freshet.yaml": "concurrency: 4\n"]).diagnostics == [])
        for value in ["0", "4097", "six"] {
            let faulty = load(["freshet.yaml": "origin-concurrency: \(value)\n"])
            #expect(faulty.diagnostics.map(\.keyPath) == ["origin-concurrency"], "\(value)")
            #expect(faulty.diagnostics.first?.severity == .error)
        }
    }
}
