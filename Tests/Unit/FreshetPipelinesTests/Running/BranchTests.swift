import FreshetSignals
import Testing

@testable import FreshetPipelines

@Suite("Branches: turns, what is the matter with them, and their names")
struct BranchTests {
    /// Who is through the turnstile.
    private final class Inside: Sendable {
        let counts = Lock((now: 0, most: 0, done: 0))
    }

    @Test("no more than the limit are through at once, and all come through")
    func turns() async {
        let turnstile = AsyncSemaphore(limit: 3)
        let inside = Inside()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    try? await turnstile.pass { () throws(FetchError) in
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

    @Test("who is cancelled while waiting takes no turn, and the turn of a body that fails is free again")
    func cancelled() async {
        let turnstile = AsyncSemaphore(limit: 1)
        let gate = CurrentValue(false)
        let holder = Task {
            try? await turnstile.pass { () throws(FetchError) in
                for await isOpen in gate where isOpen { break }
                throw .failed(RunFailure(.local, "it fails"))
            }
        }
        let waiters = (0..<50).map { _ in
            Task { () -> Bool in
                do throws(FetchError) {
                    try await turnstile.pass { () throws(FetchError) in }
                    return true
                } catch {
                    return error != .cancelled
                }
            }
        }
        for waiter in waiters { waiter.cancel() }
        var passed = 0
        // Some may have come before the holder: what matters is that nobody waits for ever.
        for waiter in waiters where await waiter.value { passed += 1 }
        gate.value = true
        _ = await holder.value
        #expect(passed <= 50)
        #expect((try? await turnstile.pass { () throws(FetchError) in 7 }) == 7)
    }

    private func failure(
        _ path: String..., kind: RunFailure.Kind = .transient, accepted: Bool = false
    ) -> BranchFailure {
        BranchFailure(path: path, failure: RunFailure(kind, "it failed"), isAccepted: accepted)
    }

    @Test("a branch that fails again counts its attempts, and one that recovers is forgotten")
    func book() {
        var book = BranchStatusTable()
        let start = ContinuousClock.now
        #expect(book.report == nil)
        book.note([failure("a"), failure("b")], of: 4, at: start)
        book.note([failure("b")], of: 4, at: start + .seconds(5))
        #expect(book.report?.failing.map(\.path) == [["b"]])
        #expect(book.report?.failing.first?.attempts == 2)
        #expect(book.report?.failing.first?.since == start)
        #expect(book.flaw?.message == "1 of 4 branches failed, of which 'b': it failed")
        book.note([], of: 4, at: start)
        #expect(book.report == nil)
        #expect(book.flaw == nil)
    }

    @Test("the failure that another attempt helps soonest decides; what is configured for is no flaw")
    func worst() {
        var book = BranchStatusTable()
        book.note([failure("a", kind: .refused), failure("x", "y", kind: .connection)], of: 2, at: .now)
        #expect(book.flaw?.kind == .connection)
        #expect(book.flaw?.message.contains("'x/y'") == true)
        book.note([failure("a", kind: .refused, accepted: true)], of: 2, at: .now)
        #expect(book.flaw == nil)
        #expect(book.report?.failed == 1)
    }

    @Test("no more branches are shown than are read, and all are counted")
    func many() {
        var book = BranchStatusTable()
        book.note((0..<100).map { failure("\($0)") }, of: 100, at: .now)
        #expect(book.report?.failed == 100)
        #expect(book.report?.failing.count == BranchReport.mostShown)
    }

    @Test("variables are one JSON object with names that jq can say")
    func variables() {
        let one = JQVariable("page-size", json: Array("1".utf8))
        let two = JQVariable("topic", json: Array(#"{"id":2}"#.utf8))
        #expect(String(decoding: JQVariable.object([one, two]), as: UTF8.self) == #"{"page_size":1,"topic":{"id":2}}"#)
        #expect(JQVariable.object([]) == [])
    }

    @Test("bytes are counted over all requests, and a redirect begins anew")
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
