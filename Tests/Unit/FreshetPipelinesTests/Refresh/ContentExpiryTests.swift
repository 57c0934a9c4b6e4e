import Testing

@testable import FreshetPipelines

@Suite("A copy whose content states when it expires")
struct ContentExpiryTests {
    private func talk() -> Dialogue {
        Dialogue(RefreshPolicy(every: .seconds(3600), quiet: .zero, freshFor: .seconds(60)), lastCheck: -1)
    }

    private func news(_ talk: Dialogue) -> [EngineEvent] {
        talk.events.filter { [.contentExpired, .contentExpiredNoMore].contains($0) }
    }

    private func expires(at seconds: Double?) -> Dialogue.Event { .contentExpires(seconds.map(Dialogue.instant)) }

    @Test("is expired from that moment, without a run, which is published once")
    func expires() {
        let talk = talk()
        _ = talk.at(1, expires(at: 30))
        #expect(talk.freshness == .fresh && talk.wake == 30)
        #expect(talk.pass(until: 40) == [])
        #expect(talk.freshness == .expired && news(talk) == [.contentExpired])
        _ = talk.at(50, .timer)
        #expect(news(talk).count == 1)
    }

    @Test("is expired at the start if that moment has passed")
    func start() {
        let talk = talk()
        _ = talk.at(0, expires(at: -100))
        #expect(talk.freshness == .expired && news(talk) == [.contentExpired])
    }

    @Test("is not expired any more when another content states another time, or none", arguments: [nil, 9_000])
    func ends(_ seconds: Double?) {
        let talk = talk()
        _ = talk.at(1, expires(at: 2))
        _ = talk.pass(until: 10)
        _ = talk.at(11, expires(at: seconds))
        #expect(talk.freshness == .fresh && news(talk) == [.contentExpired, .contentExpiredNoMore])
        _ = talk.at(12, .timer)
        #expect(news(talk).count == 2)
    }

    @Test("stays expired after a check that found the same content")
    func unchanged() {
        let talk = talk()
        _ = talk.at(1, expires(at: 2))
        _ = talk.at(5, .hears("file", at: 5))
        _ = talk.at(6, .ended(run: 1, .succeeded(changed: false, generation: 1)))
        #expect(talk.freshness == .expired && news(talk) == [.contentExpired])
    }

    @Test("spares no signal of the environment a request once it has expired")
    func signals() {
        let talk = talk()
        _ = talk.at(1, expires(at: 30))
        #expect(talk.at(29, .hears("network", at: 29)) == [])
        #expect(talk.at(31, .hears("network", at: 31)) == [.starts(1, ["network"])])
    }
}
