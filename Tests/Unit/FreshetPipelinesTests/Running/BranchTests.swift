import FreshetModel
import FreshetSignals
import Testing

@testable import FreshetPipelines

@Suite("Branches: concurrency, failures, and names")
struct BranchTests {
    /// The tasks that have entered the semaphore.
    private final class Inside: Sendable {
        let counts = Lock((now: 0, most: 0, done: 0))
    }

    @Test("no more tasks than the limit run at the same time, and all run in the end")
    func turns() async {
        let semaphore = AsyncSemaphore(limit: 3)
        let inside = Inside()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    try? await semaphore.pass { () throws(FetchError) in
                        inside.counts.withLock { inside in
                            inside.now += 1
                            inside.most = max(inside.most, inside.now)
                        }
                        await Task.yield()
                        inside.counts.withLock { inside in
                            inside.now -= 1
                            inside.done += 1
                        }
                    }
                }
            }
        }
        #expect(inside.counts.withLock { $0.done } == 200)
        #expect((1...3).contains(inside.counts.withLock { $0.most }))
    }

    @Test("a task that is cancelled while waiting takes no permit, and the permit of a failing body is free again")
    func cancelled() async {
        let semaphore = AsyncSemaphore(limit: 1)
        let gate = CurrentValue(false)
        let holder = Task {
            try? await semaphore.pass { () throws(FetchError) in
                for await isOpen in gate where isOpen { break }
                throw .failed(RunFailure(.local, "it fails"))
            }
        }
        let waiters = (0..<50).map { _ in
            Task { () -> Bool in
                do throws(FetchError) {
                    try await semaphore.pass { () throws(FetchError) in }
                    return true
                } catch {
                    return error != .cancelled
                }
            }
        }
        for waiter in waiters { waiter.cancel() }
        var passed = 0
        // Some tasks may have come before the holder: no task may wait forever.
        for waiter in waiters where await waiter.value { passed += 1 }
        gate.value = true
        _ = await holder.value
        #expect(passed <= 50)
        #expect((try? await semaphore.pass { () throws(FetchError) in 7 }) == 7)
    }

    private func failure(
        _ path: String..., kind: RunFailure.Kind = .transient, accepted: Bool = false
    ) -> BranchFailure {
        BranchFailure(path: path, failure: RunFailure(kind, "it failed"), isAccepted: accepted)
    }

    @Test("a branch that fails again counts its attempts, and one that recovers is removed")
    func table() {
        var table = BranchStatusTable()
        let start = BootInstant.now
        #expect(table.report == nil)
        table.record([failure("a"), failure("b")], of: 4, at: start)
        table.record([failure("b")], of: 4, at: start + .seconds(5))
        #expect(table.report?.failing.map(\.path) == [["b"]])
        #expect(table.report?.failing.first?.attempts == 2)
        #expect(table.report?.failing.first?.since == start)
        #expect(table.flaw?.message == "1 of 4 branches failed, of which 'b': it failed")
        table.record([], of: 4, at: start)
        #expect(table.report == nil)
        #expect(table.flaw == nil)
    }

    @Test("the failure that a retry may fix soonest decides; a configured replacement is not a flaw")
    func worst() {
        var table = BranchStatusTable()
        table.record([failure("a", kind: .refused), failure("x", "y", kind: .connection)], of: 2, at: .now)
        #expect(table.flaw?.kind == .connection)
        #expect(table.flaw?.message.contains("'x/y'") == true)
        table.record([failure("a", kind: .refused, accepted: true)], of: 2, at: .now)
        #expect(table.flaw == nil)
        #expect(table.report?.failed == 1)
    }

    @Test("the number of shown branches is limited, and all are counted")
    func many() {
        var table = BranchStatusTable()
        table.record((0..<100).map { failure("\($0)") }, of: 100, at: .now)
        #expect(table.report?.failed == 100)
        #expect(table.report?.failing.count == BranchReport.mostShown)
    }

    @Test("variables are one JSON object with names that are valid in jq")
    func variables() {
        let one = JQVariable("page-size", json: Array("1".utf8))
        let two = JQVariable("topic", json: Array(#"{"id":2}"#.utf8))
        #expect(String(decoding: JQVariable.object([one, two]), as: UTF8.self) == #"{"page_size":1,"topic":{"id":2}}"#)
        #expect(JQVariable.object([]) == [])
    }

    @Test("bytes are counted over all requests, and the count begins again after a redirect")
    func progress() {
        let progress = RunProgress()
        let (one, two) = (progress.track(), progress.track())
        one(10)
        two(5)
        one(30)
        two(3)
        two(4)
        #expect(progress.loaded.bytes == 36)
        progress.expect(branches: 3)
        progress.endBranch()
        #expect(progress.loaded == LoadProgress(bytes: 36, branches: 3, endedBranches: 1))
    }
}
