import Testing

@testable import FreshetPipelines

@Suite("A copy whose content states when it expires")
struct ContentExpiryTests {
    private func dialogue() -> Dialogue {
        Dialogue(RefreshPolicy(every: .seconds(3600), quiet: .zero, freshFor: .seconds(60)), lastCheck: -1)
    }

    private func events(_ dialogue: Dialogue) -> [EngineEvent] {
        dialogue.events.filter { [.contentExpired, .contentExpiredNoMore].contains($0) }
    }

    private func expires(at seconds: Double?) -> Dialogue.Event { .contentExpires(seconds.map(Dialogue.instant)) }

    @Test("expires at that moment, without a run, which is reported once")
    func expires() {
        let dialogue = dialogue()
        _ = dialogue.at(1, expires(at: 30))
        #expect(dialogue.freshness == .fresh && dialogue.wake == 30)
        #expect(dialogue.pass(until: 40) == [])
        #expect(dialogue.freshness == .expired && events(dialogue) == [.contentExpired])
        _ = dialogue.at(50, .timer)
        #expect(events(dialogue).count == 1)
    }

    @Test("is expired at the start if that moment has passed")
    func start() {
        let dialogue = dialogue()
        _ = dialogue.at(0, expires(at: -100))
        #expect(dialogue.freshness == .expired && events(dialogue) == [.contentExpired])
    }

    @Test("is not expired any more when another content states another time, or none", arguments: [nil, 9_000])
    func ends(_ seconds: Double?) {
        let dialogue = dialogue()
        _ = dialogue.at(1, expires(at: 2))
        _ = dialogue.pass(until: 10)
        _ = dialogue.at(11, expires(at: seconds))
        #expect(dialogue.freshness == .fresh && events(dialogue) == [.contentExpired, .contentExpiredNoMore])
        _ = dialogue.at(12, .timer)
        #expect(events(dialogue).count == 2)
    }

    @Test("stays expired after a check that found the same content")
    func unchanged() {
        let dialogue = dialogue()
        _ = dialogue.at(1, expires(at: 2))
        _ = dialogue.at(5, .receives("file", at: 5))
        _ = dialogue.at(6, .ended(run: 1, .succeeded(changed: false, generation: 1)))
        #expect(dialogue.freshness == .expired && events(dialogue) == [.contentExpired])
    }

    @Test("is fetched for each environment signal once it has expired")
    func signals() {
        let dialogue = dialogue()
        _ = dialogue.at(1, expires(at: 30))
        #expect(dialogue.at(29, .receives("network", at: 29)) == [])
        #expect(dialogue.at(31, .receives("network", at: 31)) == [.starts(1, ["network"])])
    }
}
