import FreshetModel
import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("DNS lookups that outlive their requests")
struct AbandonedLookupsTests {
    private let start = BootInstant.now
    private func at(_ seconds: Int) -> BootInstant { start + .seconds(seconds) }

    @Test("lookups of one host are limited until one of them has ended; other hosts are not affected")
    func perHost() {
        var lookups = AbandonedLookups()
        for second in 0..<4 {
            #expect(lookups.refusal(of: "a.example", at: at(second)) == nil)
            lookups.add("a.example", at: at(second))
        }
        #expect(lookups.refusal(of: "a.example", at: at(4)) == .host(4))
        #expect(lookups.refusal(of: "b.example", at: at(4)) == nil)
        #expect(lookups.refusal(of: "a.example", at: at(29)) == .host(4))
        #expect(lookups.refusal(of: "a.example", at: at(30)) == nil)
        lookups.add("a.example", at: at(30))
        #expect(lookups.refusal(of: "a.example", at: at(30)) == .host(4))
        #expect(lookups.refusal(of: "a.example", at: at(60)) == nil)
    }

    @Test("lookups of many hosts are limited first for hosts with abandoned lookups, then for all hosts")
    func inTotal() {
        var lookups = AbandonedLookups()
        for number in 0..<127 { lookups.add("\(number).example", at: at(0)) }
        #expect(lookups.refusal(of: "0.example", at: at(0)) == nil)
        lookups.add("127.example", at: at(0))
        #expect(lookups.refusal(of: "0.example", at: at(1)) == .host(1))
        #expect(lookups.refusal(of: "honest.example", at: at(1)) == nil)
        for number in 128..<255 { lookups.add("\(number).example", at: at(1)) }
        #expect(lookups.refusal(of: "honest.example", at: at(1)) == nil)
        lookups.add("255.example", at: at(1))
        #expect(lookups.refusal(of: "honest.example", at: at(1)) == .others(256))
        #expect(lookups.refusal(of: "honest.example", at: at(30)) == nil)
        #expect(lookups.refusal(of: "0.example", at: at(31)) == nil)
    }

    /// A pipeline that attempts a run ten times a second, for an hour.
    @Test("lookups never exceed the limit, and are removed when they have ended")
    func bound() {
        var lookups = AbandonedLookups()
        var alive: [BootInstant] = []
        for tenth in 0..<36_000 {
            let now = start + .milliseconds(100 * tenth)
            alive.removeAll { $0 <= now }
            guard lookups.refusal(of: "a.example", at: now) == nil else { continue }
            lookups.add("a.example", at: now)
            alive.append(now + AbandonedLookups.lifetime)
            #expect(alive.count <= AbandonedLookups.maxPerHost)
        }
        #expect(lookups.refusal(of: "a.example", at: at(3_700)) == nil)
    }

    @Test("the failure of a request that needs one more lookup names the abandoned lookups")
    func failure() {
        let failure = AbandonedLookups.Refusal.host(4).failure(of: "a.example")
        #expect(failure.kind == .connection && !failure.isRouted)
        #expect(
            failure.message
                == "could not resolve a.example: the resolver has not answered, and 4 lookups are still waiting")
    }
}
