import Testing

@testable import FreshetPipelines

@Suite("One proof for all waiting pipelines")
struct ProbeMachineTests {
    /// Drives a machine; times are seconds since the beginning.
    final class ProbeDialogue {
        enum Output: Equatable {
            case starts(UInt64, epoch: UInt64)
            case cancels(UInt64)
            case proves([UInt64], epoch: UInt64, until: Double)
            case refuses([UInt64])
            case reports(ProbeEvent)
        }

        private(set) var machine = ProbeMachine(.init(url: "https://probe.example/204?x=1", host: "probe.example"))
        private(set) var wake: Double?
        private(set) var sentence = ""
        private var now = 0.0

        func at(_ seconds: Double, _ event: ProbeMachine.Event) -> [Output] {
            now = seconds
            var outputs: [Output] = []
            for action in machine.handle(event, now: Dialogue.instant(seconds)) {
                switch action {
                case .start(let attempt, let epoch): outputs.append(.starts(attempt, epoch: epoch))
                case .cancel(let attempt): outputs.append(.cancels(attempt))
                case .notify(let waiters, .proven(let epoch, let until)):
                    outputs.append(.proves(waiters, epoch: epoch, until: Dialogue.seconds(until)))
                case .notify(let waiters, .refused(let sentence)):
                    self.sentence = sentence
                    outputs.append(.refuses(waiters))
                case .wake(let instant): wake = instant.map(Dialogue.seconds)
                case .report(let events): outputs.append(.reports(events))
                }
            }
            return outputs
        }

        /// Fires the timer once.
        func fireTimer() throws -> [Output] { at(try #require(wake), .timer) }
    }

    private let probe = NetworkProbe(url: "https://probe.example/204?x=1", host: "probe.example")
    private let redirected = ProbeMachine.Outcome.failed(RunFailure(.refused, "answered 302"))
    private let unresolved = ProbeMachine.Outcome.failed(RunFailure(.connection, "could not resolve probe.example"))
    private let sentence = "the network does not reach https://probe.example/204: answered 302"

    private func requested(_ waiter: UInt64, epoch: UInt64 = 1, since: Double? = nil) -> ProbeMachine.Event {
        .requested(by: waiter, epoch: epoch, since: since.map(Dialogue.instant))
    }

    @Test("a thousand waiting pipelines cause one request, and its success is reported to all of them")
    func shared() {
        let dialogue = ProbeDialogue()
        #expect(dialogue.at(0, requested(1)) == [.starts(1, epoch: 1)])
        for waiter in 2...1000 as ClosedRange<UInt64> { #expect(dialogue.at(0, requested(waiter)) == []) }
        #expect(dialogue.at(0.1, .ended(attempt: 1, .proven)) == [.proves(Array(1...1000), epoch: 1, until: 30.1)])
        #expect(dialogue.wake == nil)
    }

    @Test("a success holds for 30 s, also for later pipelines; then a new request is made")
    func validity() {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        _ = dialogue.at(1, .ended(attempt: 1, .proven))
        #expect(dialogue.at(30.9, requested(2)) == [.proves([2], epoch: 1, until: 31)])
        #expect(dialogue.at(31, requested(2)) == [.starts(2, epoch: 1)])
    }

    @Test("a failed proof is retried after 1, 2, 4, 8, 16, 32, 60, 60 s; it is logged once, and so is its end")
    func pauses() throws {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        #expect(
            dialogue.at(0, .ended(attempt: 1, redirected)) == [.reports(.refused(probe, sentence)), .refuses([1])])
        #expect(dialogue.sentence == sentence)
        var waits: [Double] = []
        var last = 0.0
        for attempt in 2...9 as ClosedRange<UInt64> {
            let due = try #require(dialogue.wake)
            waits.append(due - last)
            last = due
            #expect(try dialogue.fireTimer() == [.starts(attempt, epoch: 1)])
            // A pipeline that knows the reason is not notified again.
            #expect(dialogue.at(due, .ended(attempt: attempt, redirected)) == [])
        }
        #expect(waits == [1, 2, 4, 8, 16, 32, 60, 60])
        _ = try dialogue.fireTimer()
        #expect(dialogue.at(249, requested(2)) == [.refuses([2])])
        #expect(
            dialogue.at(250, .ended(attempt: 10, .proven)) == [
                .reports(.proven(probe, after: .seconds(250))), .proves([1, 2], epoch: 1, until: 280),
            ])
    }

    @Test("a pipeline that comes during the pause does not shorten it, and gets the reason")
    func joins() {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        _ = dialogue.at(0, .ended(attempt: 1, redirected))
        #expect(dialogue.at(0.5, requested(2)) == [.refuses([2])])
        #expect(dialogue.wake == 1)
    }

    @Test("a pipeline that comes long after the last attempt gets the result of the next one")
    func returns() {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        _ = dialogue.at(0, .ended(attempt: 1, redirected))
        _ = dialogue.at(0.5, .released(1))
        #expect(dialogue.wake == nil)
        #expect(dialogue.at(60, requested(2)) == [.starts(2, epoch: 1)])
        #expect(dialogue.at(60.5, requested(3)) == [.refuses([3])])
    }

    @Test("another answer is reported to all waiting pipelines")
    func another() throws {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        _ = dialogue.at(0, .ended(attempt: 1, redirected))
        _ = dialogue.at(0.5, requested(2))
        _ = try dialogue.fireTimer()
        #expect(dialogue.at(1, .ended(attempt: 2, unresolved)) == [.refuses([1, 2])])
    }

    @Test("an event since the last attempt ends the pause, once for all its subscribers")
    func nudged() {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        _ = dialogue.at(0, .ended(attempt: 1, redirected))
        #expect(dialogue.at(0.5, requested(1, since: 0.5)) == [.starts(2, epoch: 1)])
        #expect(dialogue.at(0.6, .ended(attempt: 2, redirected)) == [.refuses([1])])
        // The same event, received by another pipeline: the attempt after it has been made.
        #expect(dialogue.at(0.7, requested(2, since: 0.5)) == [.refuses([2])])
        #expect(dialogue.wake == 2.6)
    }

    @Test("an event during an attempt makes another attempt follow immediately if it fails")
    func nudgedMeanwhile() {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        #expect(dialogue.at(5, requested(1, since: 5)) == [])
        let outputs = dialogue.at(6, .ended(attempt: 1, redirected))
        #expect(outputs.last == .starts(2, epoch: 1))
        _ = dialogue.at(6.1, .ended(attempt: 2, redirected))
        #expect(dialogue.wake == 8.1)
    }

    @Test("an attempt that takes longer than 10 s is cancelled and has failed; the next one waits for its end")
    func late() throws {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        #expect(dialogue.wake == 10)
        #expect(try dialogue.fireTimer() == [.cancels(1)])
        #expect(dialogue.wake == nil)
        #expect(dialogue.at(11, .ended(attempt: 1, .cancelled)) == [.refuses([1])])
        #expect(dialogue.sentence.hasSuffix(": no answer within 10 s"))
        #expect(dialogue.wake == 12)
    }

    @Test("a success that overtakes its cancellation counts")
    func lateSuccess() throws {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        _ = try dialogue.fireTimer()
        #expect(dialogue.at(10, .ended(attempt: 1, .proven)) == [.proves([1], epoch: 1, until: 40)])
    }

    @Test("a new epoch cancels the attempt, makes a new one immediately, and ignores the old result")
    func epochs() {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        #expect(dialogue.at(1, requested(1, epoch: 2)) == [.cancels(1)])
        #expect(dialogue.at(1, .ended(attempt: 1, .proven)) == [.starts(2, epoch: 2)])
        #expect(dialogue.at(2, .ended(attempt: 2, .proven)) == [.proves([1], epoch: 2, until: 32)])
        // For a pipeline whose path did not change the proof is enough.
        #expect(dialogue.at(3, requested(2, epoch: 1)) == [.proves([2], epoch: 2, until: 32)])
        #expect(dialogue.at(3, requested(1, epoch: 3)) == [.starts(3, epoch: 3)])
    }

    @Test("a new epoch ends the pause, and the pauses begin again")
    func epochEndsPause() {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        for attempt in 1...5 as ClosedRange<UInt64> {
            _ = dialogue.at(Double(attempt), .ended(attempt: attempt, redirected))
            _ = dialogue.at(Double(attempt), requested(1, since: Double(attempt)))
        }
        _ = dialogue.at(6, .ended(attempt: 6, redirected))
        #expect(dialogue.at(7, requested(1, epoch: 2)) == [.starts(7, epoch: 2)])
        _ = dialogue.at(7, .ended(attempt: 7, redirected))
        #expect(dialogue.wake == 8)
    }

    @Test("when no pipeline waits any more the attempt is cancelled and no timer is set")
    func released() {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        _ = dialogue.at(0, requested(2))
        #expect(dialogue.at(1, .released(1)) == [])
        #expect(dialogue.at(1, .released(2)) == [.cancels(1)])
        #expect(dialogue.at(1, .ended(attempt: 1, .cancelled)) == [])
        #expect(dialogue.wake == nil)
        #expect(dialogue.machine.isIdle(at: Dialogue.instant(1)))
        #expect(dialogue.at(2, requested(3)) == [.starts(2, epoch: 1)])
    }

    @Test("while a network settles, failures to connect are not logged; after 30 s they are")
    func settling() throws {
        let dialogue = ProbeDialogue()
        _ = dialogue.at(0, requested(1))
        var reportTimes: [Double] = []
        for attempt in 1...8 as ClosedRange<UInt64> {
            let now = attempt == 1 ? 0 : try #require(dialogue.wake)
            if attempt > 1 { _ = try dialogue.fireTimer() }
            let outputs = dialogue.at(now, .ended(attempt: attempt, unresolved))
            if outputs.contains(where: { if case .reports = $0 { true } else { false } }) { reportTimes.append(now) }
        }
        #expect(reportTimes == [31])
        // The end of a failure that was not logged is not logged.
        let brief = ProbeDialogue()
        _ = brief.at(0, requested(1))
        _ = brief.at(0, .ended(attempt: 1, unresolved))
        _ = try brief.fireTimer()
        #expect(brief.at(1, .ended(attempt: 2, .proven)) == [.proves([1], epoch: 1, until: 31)])
    }
}
