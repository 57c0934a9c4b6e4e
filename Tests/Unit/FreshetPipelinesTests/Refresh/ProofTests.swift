import FreshetModel
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

    @Test("a run waits for the proof; until the first attempt has failed the status shows no wait, then the reason")
    func waits() {
        let dialogue = Dialogue(policy)
        #expect(dialogue.at(0, .receives("start", at: 0)) == [.seeksProof(epoch: 1)])
        #expect(dialogue.activity == .idle)
        #expect(dialogue.waitsFor == Wait(.network))
        #expect(dialogue.at(1, refused) == [])
        #expect(dialogue.activity == .waiting(Wait(.network, detail: sentence)))
        #expect(dialogue.pass(until: 1000) == [])
        #expect(dialogue.at(1000, proven(until: 1030)) == [.starts(1, ["start"])])
        #expect(dialogue.at(1001, .succeeds(1)) == [])
        #expect(dialogue.activity == .loaded)
        #expect(dialogue.summaries.map(\.outcome) == [.changed])
    }

    @Test("the state is reported when the reason comes, and when it changes")
    func reported() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(1, refused)
        _ = dialogue.at(2, refused)
        _ = dialogue.at(4, .proof(.refused("no answer within 10 s")))
        let states = dialogue.events.compactMap { if case .stateChanged(let activity) = $0 { activity } else { nil } }
        #expect(
            states == [
                .waiting(Wait(.network, detail: sentence)), .waiting(Wait(.network, detail: "no answer within 10 s")),
            ])
    }

    @Test("a proof holds for its validity, and no longer")
    func holds() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(0, proven(until: 30))
        _ = dialogue.at(1, .succeeds(1))
        #expect(dialogue.at(29, .receives("file", at: 29)) == [.starts(2, ["file"])])
        _ = dialogue.at(29, .succeeds(2))
        #expect(dialogue.at(40, .receives("file", at: 40)) == [.seeksProof(epoch: 1)])
    }

    @Test("a pipeline that needs no network, or has no probe, requests no proof")
    func requestsNothing() {
        let indifferent = Dialogue(RefreshPolicy(freshFor: .zero, needsNetwork: .no), needsNetwork: false)
        #expect(indifferent.at(0, .receives("start", at: 0)) == [.starts(1, ["start"])])
        let plain = Dialogue(RefreshPolicy(freshFor: .zero, needsNetwork: .yes))
        #expect(plain.at(0, .receives("start", at: 0)) == [.starts(1, ["start"])])
    }

    @Test("without a path no proof is requested; with the path it is, and the run follows")
    func path() {
        let dialogue = Dialogue(policy, network: Dialogue.offline())
        #expect(dialogue.at(0, .receives("start", at: 0)) == [])
        #expect(dialogue.at(1, .network(Dialogue.online(epoch: 2, since: 1))) == [.seeksProof(epoch: 2)])
        #expect(dialogue.at(2, proven(epoch: 2, until: 32)) == [.starts(1, ["start"])])
    }

    @Test("a request is withdrawn when the path is lost; a proof of an earlier epoch does not count")
    func epochs() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.at(1, .network(Dialogue.offline(since: 1))) == [.seeksProof(epoch: nil)])
        #expect(dialogue.at(1, proven(until: 31)) == [])
        _ = dialogue.at(2, .network(Dialogue.online("b", epoch: 2, since: 2)))
        #expect(dialogue.at(3, proven(epoch: 1, until: 33)) == [])
        #expect(dialogue.at(4, proven(epoch: 2, until: 34)) == [.starts(1, ["start"])])
    }

    @Test("the operator's request, network and resume request another attempt; a timer does not")
    func requestsAgain() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(1, refused)
        #expect(dialogue.at(5, .receives("file", at: 5)) == [])
        #expect(dialogue.at(6, .refresh(request: 1, force: false)) == [.seeksProof(epoch: 1)])
        #expect(dialogue.at(7, refused) == [])
        #expect(dialogue.at(8, .receives("resume", at: 8)) == [.seeksProof(epoch: 1)])
        #expect(dialogue.at(9, .receives("network", at: 9)) == [.seeksProof(epoch: 1)])
        #expect(dialogue.proofRequests.compactMap { $0?.since }.map(Dialogue.seconds) == [6, 8, 9])
        _ = dialogue.at(9, refused)
        #expect(
            dialogue.at(10, proven(until: 40)).contains(.starts(1, ["start", "file", "operator", "resume", "network"])))
        #expect(dialogue.at(11, .succeeds(1)) == [.answers(1, .changed)])
    }

    @Test("force ignores a missing proof")
    func forced() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        _ = dialogue.at(1, refused)
        let outputs = dialogue.at(2, .refresh(request: 1, force: true))
        #expect(outputs == [.seeksProof(epoch: nil), .starts(1, ["start", "operator"])])
    }

    @Test("the backoff comes first: no proof is requested while a failed run waits for its next attempt")
    func backoff() throws {
        var policy = policy
        policy.retry = RetryPolicy(from: .zero, to: .zero)
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(0, proven(until: 30))
        _ = dialogue.at(1, .fails(1, .refused))
        #expect(dialogue.pass(until: 60) == [])
        #expect(dialogue.pass(until: 100) == [.init(at: 61, output: .seeksProof(epoch: 1))])
        _ = dialogue.at(100, refused)
        #expect(dialogue.activity == .waiting(Wait(.network, detail: sentence)))
        #expect(dialogue.summaries.filter(\.counts).count == 1)
    }

    @Test("a proof that expires while the run waits for a permit is requested again")
    func permits() {
        let dialogue = Dialogue(policy)
        dialogue.grantsPermits = false
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.at(0, proven(until: 30)) == [])
        #expect(dialogue.permitRequests == [1])
        #expect(dialogue.at(29, .timer) == [])
        #expect(dialogue.waitsFor == Wait(.permit))
        #expect(dialogue.at(60, .permitGranted(1)) == [.seeksProof(epoch: 1)])
        #expect(dialogue.permitReleases == [1])
        dialogue.grantsPermits = true
        #expect(dialogue.at(61, proven(until: 91)) == [.starts(1, ["start"])])
    }

    @Test("an overdue check with neither path nor proof is one attempt every 15 minutes")
    func overdue() {
        let policy = RefreshPolicy(every: .seconds(600), freshFor: .zero, needsNetwork: .probe(.scripted))
        let dialogue = Dialogue(policy, network: Dialogue.offline(), lastCheck: 0)
        #expect(dialogue.pass(until: 1000) == [.init(at: 900, output: .seeksProof(epoch: 1))])
        #expect(dialogue.at(1000, refused) == [.seeksProof(epoch: nil)])
        #expect(dialogue.pass(until: 1899) == [])
        #expect(dialogue.pass(until: 1950) == [.init(at: 1900, output: .seeksProof(epoch: 1))])
        #expect(dialogue.at(1950, proven(until: 1980)) == [.starts(1, ["timer"])])
        #expect(dialogue.orders.last?.reason == .noRoute)
    }

    @Test("a pipeline that is held, asleep or stopped requests no proof")
    func takesBack() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("start", at: 0))
        #expect(dialogue.at(1, .held(true)) == [.seeksProof(epoch: nil)])
        #expect(dialogue.at(2, .held(false)) == [.seeksProof(epoch: 1)])
        #expect(dialogue.at(3, .goesToSleep(true)) == [.seeksProof(epoch: nil)])
        #expect(dialogue.at(4, .goesToSleep(false)) == [.seeksProof(epoch: 1)])
        #expect(dialogue.at(5, .stopped) == [.seeksProof(epoch: nil)])
    }

    @Test("another probe by a reload: the earlier proof does not count, and without a probe the run starts")
    func reconfigured() {
        let dialogue = Dialogue(policy)
        _ = dialogue.at(0, .receives("file", at: 0))
        _ = dialogue.at(0, proven(until: 30))
        _ = dialogue.at(1, .succeeds(1))
        var other = policy
        other.needsNetwork = .probe(NetworkProbe(url: "https://other.example/", host: "other.example"))
        _ = dialogue.at(2, .reconfigured(RefreshSettings(policy: other, needsNetwork: true), sameProduct: true))
        #expect(dialogue.at(10, .receives("file", at: 10)) == [.seeksProof(epoch: 1)])
        #expect(dialogue.proofRequests.last??.probe.host == "other.example")
        other.needsNetwork = .yes
        let none = RefreshMachine.Event.reconfigured(
            RefreshSettings(policy: other, needsNetwork: true), sameProduct: true)
        #expect(dialogue.at(11, none) == [.seeksProof(epoch: nil), .starts(2, ["file"])])
    }
}
