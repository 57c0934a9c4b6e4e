import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("A pipeline with a probe")
struct ProofTests {
    private let policy = RefreshPolicy(freshFor: .zero, needsNetwork: .probe(.scripted))
    private let sentence = NetworkProbe.scriptedRefusal

    private func proven(epoch: UInt64 = 1, until: Double) -> RefreshMachine.Event {
        .proof(.proven(epoch: epoch, until: Dialogue.instant(until)))
    }

    private var refused: RefreshMachine.Event { .proof(.refused(sentence)) }

    @Test("a run waits for the proof; until the first attempt has failed nothing shows, then the reason")
    func waits() {
        let talk = Dialogue(policy)
        #expect(talk.at(0, .hears("start", at: 0)) == [.seeksProof(epoch: 1)])
        #expect(talk.activity == .idle)
        #expect(talk.waitsFor == Wait(.network))
        #expect(talk.at(1, refused) == [])
        #expect(talk.activity == .waiting(Wait(.network, detail: sentence)))
        #expect(talk.pass(until: 1000) == [])
        #expect(talk.at(1000, proven(until: 1030)) == [.starts(1, ["start"])])
        #expect(talk.at(1001, .succeeds(1)) == [])
        #expect(talk.activity == .loaded)
        #expect(talk.summaries.map(\.outcome) == [.changed])
    }

    @Test("the state is told when the reason comes, and when it is another one")
    func told() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(1, refused)
        _ = talk.at(2, refused)
        _ = talk.at(4, .proof(.refused("no answer within 10 s")))
        let states = talk.events.compactMap { if case .stateChanged(let activity) = $0 { activity } else { nil } }
        #expect(
            states == [
                .waiting(Wait(.network, detail: sentence)), .waiting(Wait(.network, detail: "no answer within 10 s")),
            ])
    }

    @Test("a proof holds for its time, and no longer")
    func holds() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(0, proven(until: 30))
        _ = talk.at(1, .succeeds(1))
        #expect(talk.at(29, .hears("file", at: 29)) == [.starts(2, ["file"])])
        _ = talk.at(29, .succeeds(2))
        #expect(talk.at(40, .hears("file", at: 40)) == [.seeksProof(epoch: 1)])
    }

    @Test("one that needs no network, and one without a probe, ask for nothing")
    func asksForNothing() {
        let indifferent = Dialogue(RefreshPolicy(freshFor: .zero, needsNetwork: .no), needsNetwork: false)
        #expect(indifferent.at(0, .hears("start", at: 0)) == [.starts(1, ["start"])])
        let plain = Dialogue(RefreshPolicy(freshFor: .zero, needsNetwork: .yes))
        #expect(plain.at(0, .hears("start", at: 0)) == [.starts(1, ["start"])])
    }

    @Test("while there is no path nothing is asked; with the path it is, and the run follows")
    func path() {
        let talk = Dialogue(policy, network: Dialogue.offline())
        #expect(talk.at(0, .hears("start", at: 0)) == [])
        #expect(talk.at(1, .network(Dialogue.online(epoch: 2, since: 1))) == [.seeksProof(epoch: 2)])
        #expect(talk.at(2, proven(epoch: 2, until: 32)) == [.starts(1, ["start"])])
    }

    @Test("what is gone with the path is taken back; a proof of the epoch before does not count")
    func epochs() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.at(1, .network(Dialogue.offline(since: 1))) == [.seeksProof(epoch: nil)])
        #expect(talk.at(1, proven(until: 31)) == [])
        _ = talk.at(2, .network(Dialogue.online("b", epoch: 2, since: 2)))
        #expect(talk.at(3, proven(epoch: 1, until: 33)) == [])
        #expect(talk.at(4, proven(epoch: 2, until: 34)) == [.starts(1, ["start"])])
    }

    @Test("the operator's request, network and resume ask again; a timer does not")
    func asksAgain() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(1, refused)
        #expect(talk.at(5, .hears("file", at: 5)) == [])
        #expect(talk.at(6, .refresh(request: 1, force: false)) == [.seeksProof(epoch: 1)])
        #expect(talk.at(7, refused) == [])
        #expect(talk.at(8, .hears("resume", at: 8)) == [.seeksProof(epoch: 1)])
        #expect(talk.at(9, .hears("network", at: 9)) == [.seeksProof(epoch: 1)])
        #expect(talk.wishes.compactMap { $0?.since }.map(Dialogue.seconds) == [6, 8, 9])
        _ = talk.at(9, refused)
        #expect(
            talk.at(10, proven(until: 40)).contains(.starts(1, ["start", "file", "operator", "resume", "network"])))
        #expect(talk.at(11, .succeeds(1)) == [.answers(1, .changed)])
    }

    @Test("force passes a missing proof")
    func forced() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        _ = talk.at(1, refused)
        let deeds = talk.at(2, .refresh(request: 1, force: true))
        #expect(deeds == [.seeksProof(epoch: nil), .starts(1, ["start", "operator"])])
    }

    @Test("back-off comes first: nothing is asked while a failed run waits for its next attempt")
    func backOff() throws {
        var policy = policy
        policy.retry = RetryPolicy(from: .zero, to: .zero)
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(0, proven(until: 30))
        _ = talk.at(1, .fails(1, .refused))
        #expect(talk.pass(until: 60) == [])
        #expect(talk.pass(until: 100) == [.init(at: 61, deed: .seeksProof(epoch: 1))])
        _ = talk.at(100, refused)
        #expect(talk.activity == .waiting(Wait(.network, detail: sentence)))
        #expect(talk.summaries.filter(\.counts).count == 1)
    }

    @Test("a proof that runs out while a place among the runs is waited for is asked for again")
    func slots() {
        let talk = Dialogue(policy)
        talk.grantsSlots = false
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.at(0, proven(until: 30)) == [])
        #expect(talk.slotRequests == [1])
        #expect(talk.at(29, .timer) == [])
        #expect(talk.waitsFor == Wait(.slot))
        #expect(talk.at(60, .slotGranted(1)) == [.seeksProof(epoch: 1)])
        #expect(talk.slotReleases == [1])
        talk.grantsSlots = true
        #expect(talk.at(61, proven(until: 91)) == [.starts(1, ["start"])])
    }

    @Test("an overdue check with neither path nor proof is one attempt each 15 minutes")
    func overdue() {
        let policy = RefreshPolicy(every: .seconds(600), freshFor: .zero, needsNetwork: .probe(.scripted))
        let talk = Dialogue(policy, network: Dialogue.offline(), lastCheck: 0)
        #expect(talk.pass(until: 1000) == [.init(at: 900, deed: .seeksProof(epoch: 1))])
        #expect(talk.at(1000, refused) == [.seeksProof(epoch: nil)])
        #expect(talk.pass(until: 1899) == [])
        #expect(talk.pass(until: 1950) == [.init(at: 1900, deed: .seeksProof(epoch: 1))])
        #expect(talk.at(1950, proven(until: 1980)) == [.starts(1, ["timer"])])
        #expect(talk.orders.last?.reason == .routingSaysNo)
    }

    @Test("held, asleep or stopped it asks for nothing")
    func takesBack() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("start", at: 0))
        #expect(talk.at(1, .held(true)) == [.seeksProof(epoch: nil)])
        #expect(talk.at(2, .held(false)) == [.seeksProof(epoch: 1)])
        #expect(talk.at(3, .goesToSleep(true)) == [.seeksProof(epoch: nil)])
        #expect(talk.at(4, .goesToSleep(false)) == [.seeksProof(epoch: 1)])
        #expect(talk.at(5, .stopped) == [.seeksProof(epoch: nil)])
    }

    @Test("another probe by a reload: the proof of the one before does not count, and without one the run starts")
    func reconfigured() {
        let talk = Dialogue(policy)
        _ = talk.at(0, .hears("file", at: 0))
        _ = talk.at(0, proven(until: 30))
        _ = talk.at(1, .succeeds(1))
        var other = policy
        other.needsNetwork = .probe(NetworkProbe(url: "https://other.example/", host: "other.example"))
        _ = talk.at(2, .reconfigured(RefreshSettings(policy: other, needsNetwork: true), sameProduct: true))
        #expect(talk.at(10, .hears("file", at: 10)) == [.seeksProof(epoch: 1)])
        #expect(talk.wishes.last??.probe.host == "other.example")
        other.needsNetwork = .yes
        let none = RefreshMachine.Event.reconfigured(
            RefreshSettings(policy: other, needsNetwork: true), sameProduct: true)
        #expect(talk.at(11, none) == [.seeksProof(epoch: nil), .starts(2, ["file"])])
    }
}
