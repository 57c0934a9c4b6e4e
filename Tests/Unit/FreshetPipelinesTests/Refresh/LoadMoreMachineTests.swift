import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("The machine of further pages")
struct LoadMoreMachineTests {
    private let refusal = RefreshRefusal.held

    private func ask(
        _ machine: inout LoadMoreMachine, _ number: UInt64, _ place: String, refusal: RefreshRefusal? = nil,
        during run: RunInProgress? = nil, at second: Double = 0
    ) -> LoadMoreMachine.Reply {
        machine.requested([number], at: [place], refusal: refusal, during: run, Dialogue.instant(second))
    }

    /// The run of the first request.
    private func start(_ machine: inout LoadMoreMachine) throws -> RunInProgress {
        let first = machine.takeFirst()
        let request = try #require(first)
        let order = RunOrder(
            run: 1, reason: .loadMore(request.place), causes: [request.cause], started: Dialogue.instant(1), epoch: 1)
        return RunInProgress(
            order, requests: request.requests, permit: 1, startBefore: nil, path: "a", limit: .seconds(30))
    }

    private func end(
        _ machine: inout LoadMoreMachine, _ run: RunInProgress, _ end: RunEnd, refusal: RefreshRefusal? = nil
    ) -> RunConclusion {
        machine.ended(run, end, refusal: refusal, deadline: .seconds(30))
    }

    @Test("requests for one place are one request with all numbers and a count; another place waits behind it")
    func merges() {
        var machine = LoadMoreMachine()
        #expect(ask(&machine, 1, "a") == .waits)
        #expect(ask(&machine, 2, "b", at: 1) == .waits)
        #expect(ask(&machine, 3, "a", at: 2) == .waits)
        #expect(machine.waiting.map(\.place) == [["a"], ["b"]])
        #expect(machine.waiting.map(\.requests) == [[1, 3], [2]])
        #expect(machine.waiting[0].cause.count == 2)
        #expect(machine.waiting[0].cause.first == Dialogue.instant(0))
        #expect(machine.waiting[0].cause.last == Dialogue.instant(2))
        #expect(machine.takeAll() == [1, 3, 2])
        #expect(machine.isEmpty)
    }

    @Test("a request joins the run for its place, unless the run is about to end")
    func joins() throws {
        var machine = LoadMoreMachine()
        _ = ask(&machine, 1, "a")
        var run = try start(&machine)
        #expect(ask(&machine, 2, "a", during: run) == .joinsRun)
        #expect(ask(&machine, 3, "b", during: run) == .waits)
        _ = run.interrupt(.restart, mayFinish: false)
        #expect(ask(&machine, 4, "a", during: run) == .waits)
    }

    @Test("an obstacle refuses a request, and so does the limit; a known place needs no space")
    func refuses() {
        var machine = LoadMoreMachine()
        #expect(ask(&machine, 1, "a", refusal: refusal) == .refused(refusal))
        #expect(machine.isEmpty)
        for place in 0..<LoadMoreMachine.limit { #expect(ask(&machine, UInt64(place), "\(place)") == .waits) }
        #expect(ask(&machine, 900, "0") == .waits)
        #expect(ask(&machine, 901, "x") == .refused(.tooManyRequests(limit: LoadMoreMachine.limit)))
        #expect(machine.waiting.count == LoadMoreMachine.limit)
    }

    @Test("the first page is loaded when no run is in progress and the network is proven")
    func decides() {
        var machine = LoadMoreMachine()
        #expect(machine.decision(isFree: true, isProven: true) == .nothingRequested)
        _ = ask(&machine, 1, "a")
        #expect(machine.decision(isFree: false, isProven: true) == .nothingRequested)
        #expect(machine.decision(isFree: true, isProven: false) == .unproven)
        #expect(machine.decision(isFree: true, isProven: true) == .ready(.loadMore(["a"])))
    }

    @Test("the end of a run answers the requests, and no failure counts")
    func ends() throws {
        var machine = LoadMoreMachine()
        _ = ask(&machine, 1, "a")
        let run = try start(&machine)
        let failure = RunFailure(.transient, "503")
        #expect(
            end(&machine, run, .succeeded(RunSuccess(changed: true, generation: 4)))
                == RunConclusion(.changed, generation: 4, counts: false, .answered))
        #expect(
            end(&machine, run, .failed(failure))
                == RunConclusion(.failed, failure: failure, counts: false, .answered))
        #expect(end(&machine, run, .late).failure?.kind == .deadline)
        for interruption in [Interruption.restart, .configuration] {
            #expect(
                end(&machine, run, .superseded(by: interruption), refusal: refusal)
                    == RunConclusion(.superseded, counts: false, .answered))
        }
        for stop in [RunEnd.stopped, .cancelled] {
            #expect(end(&machine, run, stop) == RunConclusion(.cancelled, counts: false, .stopped))
        }
        #expect(machine.isEmpty)
    }

    @Test("a page whose network is gone is requested again before all others, or refused")
    func again() throws {
        var machine = LoadMoreMachine()
        _ = ask(&machine, 1, "a")
        let run = try start(&machine)
        _ = ask(&machine, 2, "b", at: 2)
        _ = ask(&machine, 3, "a", during: nil, at: 3)
        #expect(
            end(&machine, run, .superseded(by: .networkLost), refusal: refusal)
                == RunConclusion(.superseded, counts: false, .refused(refusal)))
        #expect(machine.waiting.map(\.place) == [["b"], ["a"]])
        #expect(
            end(&machine, run, .superseded(by: .networkLost)) == RunConclusion(.superseded, counts: false, .kept))
        #expect(machine.waiting.map(\.place) == [["a"], ["b"]])
        #expect(machine.waiting[0].requests == [1, 3])
        #expect(machine.waiting[0].cause.count == 2)
        #expect(machine.waiting[0].cause.last == Dialogue.instant(3))
    }
}
