import Testing

@testable import FreshetPipelines

@Suite("One proof for all who wait for it")
struct ProbeMachineTests {
    /// A talk with a machine; times are seconds since the beginning.
    final class Talk {
        enum Permission: Equatable {
            case asks(UInt64, epoch: UInt64)
            case cancels(UInt64)
            case proves([UInt64], epoch: UInt64, until: Double)
            case refuses([UInt64])
            case says(ProbeEvent)
        }

        private(set) var machine = ProbeMachine(.init(url: "https://probe.example/204?x=1", host: "probe.example"))
        private(set) var wake: Double?
        private(set) var sentence = ""
        private var now = 0.0

        func at(_ seconds: Double, _ event: ProbeMachine.Event) -> [Permission] {
            now = seconds
            var deeds: [Permission] = []
            for action in machine.handle(event, now: Dialogue.instant(seconds)) {
                switch action {
                case .ask(let attempt, let epoch): deeds.append(.asks(attempt, epoch: epoch))
                case .cancel(let attempt): deeds.append(.cancels(attempt))
                case .tell(let waiters, .proven(let epoch, let until)):
                    deeds.append(.proves(waiters, epoch: epoch, until: Dialogue.seconds(until)))
                case .tell(let waiters, .refused(let sentence)):
                    self.sentence = sentence
                    deeds.append(.refuses(waiters))
                case .wake(let instant): wake = instant.map(Dialogue.seconds)
                case .report(let news): deeds.append(.says(news))
                }
            }
            return deeds
        }

        /// Lets the timer ring once.
        func ring() throws -> [Permission] { at(try #require(wake), .timer) }
    }

    private let probe = NetworkProbe(url: "https://probe.example/204?x=1", host: "probe.example")
    private let redirected = ProbeMachine.Outcome.failed(RunFailure(.refused, "answered 302"))
    private let unresolved = ProbeMachine.Outcome.failed(RunFailure(.connection, "could not resolve probe.example"))
    private let sentence = "the network does not reach https://probe.example/204: answered 302"

    private func wanted(_ waiter: UInt64, epoch: UInt64 = 1, since: Double? = nil) -> ProbeMachine.Event {
        .wanted(by: waiter, epoch: epoch, since: since.map(Dialogue.instant))
    }

    @Test("a thousand who wait are one request, and its success is told to all of them")
    func shared() {
        let talk = Talk()
        #expect(talk.at(0, wanted(1)) == [.asks(1, epoch: 1)])
        for waiter in 2...1000 as ClosedRange<UInt64> { #expect(talk.at(0, wanted(waiter)) == []) }
        #expect(talk.at(0.1, .ended(attempt: 1, .proven)) == [.proves(Array(1...1000), epoch: 1, until: 30.1)])
        #expect(talk.wake == nil)
    }

    @Test("a success holds for 30 s, for who comes later too; then it is asked again")
    func validity() {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        _ = talk.at(1, .ended(attempt: 1, .proven))
        #expect(talk.at(30.9, wanted(2)) == [.proves([2], epoch: 1, until: 31)])
        #expect(talk.at(31, wanted(2)) == [.asks(2, epoch: 1)])
    }

    @Test("it is tried again after 1, 2, 4, 8, 16, 32, 60, 60 s; people hear of it once, and of its end")
    func pauses() throws {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        #expect(
            talk.at(0, .ended(attempt: 1, redirected)) == [.says(.refused(probe, sentence)), .refuses([1])])
        #expect(talk.sentence == sentence)
        var waits: [Double] = []
        var last = 0.0
        for attempt in 2...9 as ClosedRange<UInt64> {
            let due = try #require(talk.wake)
            waits.append(due - last)
            last = due
            #expect(try talk.ring() == [.asks(attempt, epoch: 1)])
            // Who knows it already is not told again.
            #expect(talk.at(due, .ended(attempt: attempt, redirected)) == [])
        }
        #expect(waits == [1, 2, 4, 8, 16, 32, 60, 60])
        _ = try talk.ring()
        #expect(talk.at(249, wanted(2)) == [.refuses([2])])
        #expect(
            talk.at(250, .ended(attempt: 10, .proven)) == [
                .says(.proven(probe, after: .seconds(250))), .proves([1, 2], epoch: 1, until: 280),
            ])
    }

    @Test("who comes in the meantime does not shorten the pause, and hears why it waits")
    func joins() {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        _ = talk.at(0, .ended(attempt: 1, redirected))
        #expect(talk.at(0.5, wanted(2)) == [.refuses([2])])
        #expect(talk.wake == 1)
    }

    @Test("who comes long after the last attempt hears of the next one, not of that")
    func returns() {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        _ = talk.at(0, .ended(attempt: 1, redirected))
        _ = talk.at(0.5, .released(1))
        #expect(talk.wake == nil)
        #expect(talk.at(60, wanted(2)) == [.asks(2, epoch: 1)])
        #expect(talk.at(60.5, wanted(3)) == [.refuses([3])])
    }

    @Test("another answer than before is told to all who wait")
    func another() throws {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        _ = talk.at(0, .ended(attempt: 1, redirected))
        _ = talk.at(0.5, wanted(2))
        _ = try talk.ring()
        #expect(talk.at(1, .ended(attempt: 2, unresolved)) == [.refuses([1, 2])])
    }

    @Test("what happened since the last attempt ends the pause, once for all who heard of it")
    func nudged() {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        _ = talk.at(0, .ended(attempt: 1, redirected))
        #expect(talk.at(0.5, wanted(1, since: 0.5)) == [.asks(2, epoch: 1)])
        #expect(talk.at(0.6, .ended(attempt: 2, redirected)) == [.refuses([1])])
        // The same occurrence, heard by another: the attempt after it has been made.
        #expect(talk.at(0.7, wanted(2, since: 0.5)) == [.refuses([2])])
        #expect(talk.wake == 2.6)
    }

    @Test("what happens during an attempt makes another follow at once if it fails")
    func nudgedMeanwhile() {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        #expect(talk.at(5, wanted(1, since: 5)) == [])
        let deeds = talk.at(6, .ended(attempt: 1, redirected))
        #expect(deeds.last == .asks(2, epoch: 1))
        _ = talk.at(6.1, .ended(attempt: 2, redirected))
        #expect(talk.wake == 8.1)
    }

    @Test("an attempt that takes longer than 10 s is cancelled and has failed; the next waits for its end")
    func late() throws {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        #expect(talk.wake == 10)
        #expect(try talk.ring() == [.cancels(1)])
        #expect(talk.wake == nil)
        #expect(talk.at(11, .ended(attempt: 1, .cancelled)) == [.refuses([1])])
        #expect(talk.sentence.hasSuffix(": no answer within 10 s"))
        #expect(talk.wake == 12)
    }

    @Test("a success that overtakes its cancellation counts")
    func lateSuccess() throws {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        _ = try talk.ring()
        #expect(talk.at(10, .ended(attempt: 1, .proven)) == [.proves([1], epoch: 1, until: 40)])
    }

    @Test("a new epoch cancels the attempt, asks anew at once, and does not believe what the old one brings")
    func epochs() {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        #expect(talk.at(1, wanted(1, epoch: 2)) == [.cancels(1)])
        #expect(talk.at(1, .ended(attempt: 1, .proven)) == [.asks(2, epoch: 2)])
        #expect(talk.at(2, .ended(attempt: 2, .proven)) == [.proves([1], epoch: 2, until: 32)])
        // One whose path did not change is content with it.
        #expect(talk.at(3, wanted(2, epoch: 1)) == [.proves([2], epoch: 2, until: 32)])
        #expect(talk.at(3, wanted(1, epoch: 3)) == [.asks(3, epoch: 3)])
    }

    @Test("a new epoch ends the pause, and the pauses begin anew")
    func epochEndsPause() {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        for attempt in 1...5 as ClosedRange<UInt64> {
            _ = talk.at(Double(attempt), .ended(attempt: attempt, redirected))
            _ = talk.at(Double(attempt), wanted(1, since: Double(attempt)))
        }
        _ = talk.at(6, .ended(attempt: 6, redirected))
        #expect(talk.at(7, wanted(1, epoch: 2)) == [.asks(7, epoch: 2)])
        _ = talk.at(7, .ended(attempt: 7, redirected))
        #expect(talk.wake == 8)
    }

    @Test("when nobody waits any more the attempt is cancelled and no timer is set")
    func released() {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        _ = talk.at(0, wanted(2))
        #expect(talk.at(1, .released(1)) == [])
        #expect(talk.at(1, .released(2)) == [.cancels(1)])
        #expect(talk.at(1, .ended(attempt: 1, .cancelled)) == [])
        #expect(talk.wake == nil)
        #expect(talk.machine.isSpent(at: Dialogue.instant(1)))
        #expect(talk.at(2, wanted(3)) == [.asks(2, epoch: 1)])
    }

    @Test("while a network settles, that nothing is connected is not told; after 30 s it is")
    func settling() throws {
        let talk = Talk()
        _ = talk.at(0, wanted(1))
        var said: [Double] = []
        for attempt in 1...8 as ClosedRange<UInt64> {
            let now = attempt == 1 ? 0 : try #require(talk.wake)
            if attempt > 1 { _ = try talk.ring() }
            let deeds = talk.at(now, .ended(attempt: attempt, unresolved))
            if deeds.contains(where: { if case .says = $0 { true } else { false } }) { said.append(now) }
        }
        #expect(said == [31])
        // One that ended before it was told is no news.
        let brief = Talk()
        _ = brief.at(0, wanted(1))
        _ = brief.at(0, .ended(attempt: 1, unresolved))
        _ = try brief.ring()
        #expect(brief.at(1, .ended(attempt: 2, .proven)) == [.proves([1], epoch: 1, until: 31)])
    }
}
