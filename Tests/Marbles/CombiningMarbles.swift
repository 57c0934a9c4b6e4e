import FreshetSignals
import FreshetTestKit
import Testing

@Suite("merge of sequences, as marble diagrams")
struct MergeMarbles {
    let stage = MarbleStage()

    @Test("elements are delivered as they arrive, until the last sequence has ended")
    func merged() throws {
        let a = stage.emitter(" --a-----b--|")
        let b = stage.emitter(" ----1---2------|")
        let ab: Marbles = "     --a-1---(b2)------|"
        try stage.expect(merge([a, b]), ab)
    }

    @Test("a merge of no sequences ends immediately")
    func none() throws {
        try stage.expect(merge([Emitter<Int, Never>]()), "|")
    }

    @Test("a failure of one sequence fails the merge immediately")
    func failure() throws {
        let a = stage.emitter(" --a--x")
        let b = stage.emitter(" ---1---2---|")
        let ab: Marbles = "     --a1-x------"
        try stage.expect(merge([a, b]), ab)
    }

    @Test("a failure of one sequence drops elements that wait for a slow consumer")
    func failureDrops() throws {
        let a = stage.emitter("    --a------")
        let b = stage.emitter("    ----x----")
        let consumer: Marbles = "  ^-----^--"
        // The consumer gets the element for its call in frame 0. At its next call there is only the failure.
        try stage.expect(merge([a, b]), "--a---x", consumer: consumer)
        let again = MarbleStage()
        let c = again.emitter("    (ac)-----")
        let d = again.emitter("    ----x----")
        try again.expect(merge([c, d]), "a-----x", consumer: consumer)
    }

    @Test("one element of each sequence waits, first come, first served")
    func backPressure() throws {
        let a = stage.emitter("   (ab)-------|")
        let b = stage.emitter("   (12)-------|")
        let consumer: Marbles = " ---^^^^^^^"
        let result: Marbles = "   ---a1b2----|"
        try stage.expect(merge([a, b]), result, consumer: consumer)
    }

    @Test("signals are merged to one signal")
    func signals() throws {
        let a = stage.signal("  --s---s|")
        let b = stage.signal("  ---t--t----|")
        let ab: Marbles = "     --oo--(oo)----|"
        try stage.expect(merge([a, b]), ab)
    }

    @Test("firings before the first next() are delivered")
    func hot() throws {
        let signal = stage.signal("  s-s-----|")
        let consumer: Marbles = "    -----^^^^"
        let result: Marbles = "      -----oo-|"
        try stage.expect(merge([Emitter(signal), Emitter(Signal.merge())]), result, consumer: consumer)
    }

    @Test("a cancelled consumer gets the end")
    func cancelled() throws {
        let a = stage.emitter("   -a-b-c")
        let consumer: Marbles = " ----!"
        try stage.expect(merge([a, a]), "-(aa)-(bb)|-", consumer: consumer)
    }
}

@Suite("combineLatest, as marble diagrams")
struct CombineLatestMarbles {
    let stage = MarbleStage()

    @Test("there is one tuple for each element, once both sequences have delivered")
    func two() throws {
        let a = stage.emitter(" --a-----b------|")
        let b = stage.emitter(" ----1-------2-|")
        let ab: Marbles = "     ----{a1}---{b1}---{b2}--|"
        try stage.expect(combineLatest(a, b).map { $0 + $1 }, ab)
    }

    @Test("three sequences are combined like two")
    func three() throws {
        let a = stage.emitter(" --a-----b------|")
        let b = stage.emitter(" ----1-------2-|")
        let c = stage.emitter(" p---q|")
        let abc: Marbles = "    ----({a1p}{a1q})---{b1q}---{b2q}--|"
        try stage.expect(combineLatest(a, b, c).map { $0 + $1 + $2 }, abc)
    }

    @Test("until each sequence has delivered, only the latest elements of the others are kept")
    func latestOnly() throws {
        let a = stage.emitter(" abc-----|")
        let b = stage.emitter(" ----1---|")
        try stage.expect(combineLatest(a, b).map { $0 + $1 }, "----{c1}---|")
    }

    @Test("a sequence that ends without an element ends the result immediately")
    func empty() throws {
        let a = stage.emitter(" -a-----b------|")
        let b = stage.emitter(" ---|")
        try stage.expect(combineLatest(a, b).map { $0 + $1 }, "---|")
    }

    @Test("a failure of either sequence fails the result immediately")
    func failure() throws {
        let a = stage.emitter(" -a-----b------|")
        let b = stage.emitter(" -1--x")
        try stage.expect(combineLatest(a, b).map { $0 + $1 }, "-{a1}--x")
        let again = MarbleStage()
        let c = again.emitter(" -x")
        let d = again.emitter(" ----1|")
        try again.expect(combineLatest(c, d, d).map { $0 + $1 + $2 }, "-x")
    }

    @Test("current values give the current ones first, then one tuple for each change")
    func values() throws {
        let a = stage.currentValue("a", " --b----|")
        let b = stage.currentValue("1", " ----2--|")
        try stage.expect(combineLatest(a, b).map { $0 + $1 }, "{a1}-{b1}-{b2}--|")
    }
}

@Suite("accumulateLatestMany, as marble diagrams")
struct AccumulateLatestManyMarbles {
    let stage = MarbleStage()

    @Test("there is one array for each element, in the given order, once each sequence has delivered")
    func arrays() throws {
        let a = stage.emitter(" --a-----b--------|")
        let b = stage.emitter(" ----1-------2-|")
        let c = stage.emitter(" -p----|")
        let result: Marbles = " ----{a1p}---{b1p}---{b2p}----|"
        try stage.expect(accumulateLatestMany([a, b, c]).map { $0.joined() }, result)
    }

    @Test("no sequences give one empty array, then the end")
    func none() throws {
        let result = accumulateLatestMany([Emitter<Int, Never>]())
        try stage.expect(result, "(n|)", name: { $0.isEmpty ? "n" : "?" })
    }

    @Test("until each sequence has delivered, only the latest elements of the others are kept")
    func latestOnly() throws {
        let a = stage.emitter(" abc-----|")
        let b = stage.emitter(" ----1---|")
        try stage.expect(accumulateLatestMany([a, b]).map { $0.joined() }, "----{c1}---|")
    }

    @Test("each element of one instant gives one array")
    func atOnce() throws {
        let a = stage.emitter(" a--(bc)-|")
        let b = stage.emitter(" 1--2----|")
        let result: Marbles = " {a1}--({b1}{c1}{c2})----|"
        try stage.expect(accumulateLatestMany([a, b]).map { $0.joined() }, result, name: { $0 })
    }

    @Test("a sequence that ends without an element ends the result immediately, even if all others have delivered")
    func empty() throws {
        let a = stage.emitter(" -a-----b------|")
        let b = stage.emitter(" ---|")
        try stage.expect(accumulateLatestMany([a, b]).map { $0.joined() }, "---|")
    }

    @Test("a failure of one sequence fails the result immediately, before or after the first array")
    func failure() throws {
        let a = stage.emitter(" -a-----b------|")
        let b = stage.emitter(" -1--x")
        try stage.expect(accumulateLatestMany([a, b]).map { $0.joined() }, "-{a1}--x")
        let again = MarbleStage()
        let c = again.emitter(" -x")
        let d = again.emitter(" ----1|")
        try again.expect(accumulateLatestMany([c, d]).map { $0.joined() }, "-x")
    }

    @Test("a sequence is read again only when the array with its last element was taken")
    func backPressure() throws {
        let a = stage.emitter("   (abc)------|")
        let b = stage.emitter("   --1--------|")
        let consumer: Marbles = " ^------^"
        // Until b delivers, a is read continuously; its end is not an element.
        try stage.expect(accumulateLatestMany([a, b]).map { $0.joined() }, "--{c1}--------|", consumer: consumer)
        let again = MarbleStage()
        let c = again.emitter("   a--bcd-----|")
        let d = again.emitter("   1----------|")
        let slow: Marbles = "     ^-------^^^^"
        let result: Marbles = "   {a1}-------{b1}{c1}{d1}|"
        try again.expect(accumulateLatestMany([c, d]).map { $0.joined() }, result, consumer: slow)
    }

    @Test("a cancelled consumer gets the end")
    func cancelled() throws {
        let a = stage.emitter("   -a-b-c")
        let consumer: Marbles = " ----!"
        try stage.expect(accumulateLatestMany([a]).map { $0.joined() }, "-a-b|-", consumer: consumer)
    }
}

@Suite("withLatestFrom, as marble diagrams")
struct WithLatestFromMarbles {
    let stage = MarbleStage()

    @Test("each element is paired with the latest of the other; elements before the other's first are dropped")
    func pairs() throws {
        let a = stage.emitter(" --a---b-----c--d-|")
        let b = stage.emitter(" ----1----2-----")
        let ab: Marbles = "     ------{b1}-----{c2}--{d2}-|"
        try stage.expect(a.withLatestFrom(b).map { $0 + $1 }, ab)
    }

    @Test("the other sequence's element at the start is paired with the first element")
    func presentValue() throws {
        let value = stage.currentValue("v", "--w---")
        let signal = stage.signal("         s--s-|")
        try stage.expect(signal.withLatestFrom(value).map(\.1), "v--w-|")
    }

    @Test("the same holds if the other sequence is made by operators")
    func presentValueOfOperator() throws {
        let v = stage.currentValue("v", "--w---")
        let x = stage.currentValue("1", "------")
        let signal = stage.signal("      s--s-|")
        let other = combineLatest(v, x).map { $0 + $1 }.removeDuplicates()
        try stage.expect(signal.withLatestFrom(other).map(\.1), "{v1}--{w1}-|")
    }

    @Test("the end of the upstream ends the result immediately")
    func upstreamEnds() throws {
        let a = stage.emitter(" --a-|")
        let b = stage.emitter(" 1---2---3---")
        try stage.expect(a.withLatestFrom(b).map { $0 + $1 }, "--{a1}-|")
    }

    @Test("the end of the other sequence keeps its last value")
    func otherEnds() throws {
        let a = stage.emitter(" --a----b-|")
        let b = stage.emitter(" 1--2|")
        try stage.expect(a.withLatestFrom(b).map { $0 + $1 }, "--{a1}----{b2}-|")
    }

    @Test("the end of the other sequence without a value ends the result immediately")
    func otherEndsEmpty() throws {
        let a = stage.emitter(" --a----b-|")
        let b = stage.emitter(" ----|")
        try stage.expect(a.withLatestFrom(b).map { $0 + $1 }, "----|")
    }

    @Test("a failure of either sequence fails the result")
    func failures() throws {
        let a = stage.emitter(" --a----b-|")
        let b = stage.emitter(" 1---x")
        try stage.expect(a.withLatestFrom(b).map { $0 + $1 }, "--{a1}-x")
        let again = MarbleStage()
        let c = again.emitter(" --a--x")
        let d = again.emitter(" 1---2---")
        try again.expect(c.withLatestFrom(d).map { $0 + $1 }, "--{a1}--x")
    }

    @Test("the value is the latest when the element is received from the upstream; one pair is held")
    func sampled() throws {
        let signal = stage.signal("        s--s--s-------|")
        let value = stage.currentValue("v", "-w--y--z-------")
        let consumer: Marbles = "           ^--------^^^^^"
        // The second firing is received in frame 3 and its pair is held; the third waits in the signal until then.
        let result: Marbles = "             v--------wz---|"
        try stage.expect(signal.withLatestFrom(value).map(\.1), result, consumer: consumer)
    }
}

@Suite("switchToLatest, as marble diagrams")
struct SwitchToLatestMarbles {
    let stage = MarbleStage()

    @Test("after a new inner sequence no element of the previous one is delivered")
    func switching() throws {
        let outer = stage.emitter("  --p-----q-----|")
        let p = stage.emitter("        -a-b-c-d-|")
        let q = stage.emitter("              -e--f---g-|")
        let result: Marbles = "      ---a-b-c-e--f---g-|"
        try stage.expect(outer.map { $0 == "p" ? p : q }.switchToLatest(), result)
    }

    @Test("the end of an inner sequence does not end the result; after the upstream's end the latest can finish")
    func ends() throws {
        let outer = stage.emitter("  p------p-|")
        let p = stage.emitter("      -a-|")
        let result: Marbles = "      -a------a-|"
        try stage.expect(outer.map { _ in p }.switchToLatest(), result)
        try MarbleStage().expect(merge([Emitter<Emitter<Int, Never>, Never>]()).switchToLatest(), "|")
    }

    @Test("the result ends with the upstream if that ends after the last inner sequence")
    func upstreamEndsLater() throws {
        let outer = stage.emitter("  p--------|")
        let p = stage.emitter("      -a-|")
        try stage.expect(outer.map { _ in p }.switchToLatest(), "-a-------|")
    }

    @Test("a failure of the upstream or of the latest fails the result; a failure of a replaced sequence is ignored")
    func failures() throws {
        let outer = stage.emitter("  p---q------")
        let p = stage.emitter("      -a---x")
        let q = stage.emitter("          -b--x")
        let result: Marbles = "      -a---b--x"
        try stage.expect(outer.map { $0 == "p" ? p : q }.switchToLatest(), result)
        let again = MarbleStage()
        let failing = again.emitter(" p-x")
        let r = again.emitter("       -a-b-c-|")
        try again.expect(failing.map { _ in r }.switchToLatest(), "-ax")
    }

    @Test("either side may be a sequence that cannot fail")
    func overloads() throws {
        let value = stage.currentValue("p", "---q-|")
        let p = stage.emitter("              -a-b-|")
        try stage.expect(value.map { _ in p }.switchToLatest(), "-a--a-b-|")
        let again = MarbleStage()
        let outer = again.emitter("          p--x")
        try again.expect(outer.map { _ in Emitter<Int, Never>.once { 1 } }.switchToLatest(), "1--x")
    }

    @Test("an element that the latest holds for a slow consumer is dropped when it is replaced")
    func drops() throws {
        let outer = stage.emitter("   p----q----")
        let inner = stage.emitter("   (abc)-----")
        let consumer: Marbles = "     ^------^^-"
        try stage.expect(outer.map { _ in inner }.switchToLatest(), "a------ab", consumer: consumer)
    }
}

@Suite("share, as marble diagrams")
struct ShareMarbles {
    let stage = MarbleStage()

    @Test(
        "a new subscriber gets the last elements, then the following ones",
        arguments: [
            (0, "-----c-d-|" as Marbles), (1, "----bc-d-|"), (2, "----(ab)c-d-|"), (9, "----(ab)c-d-|"),
        ])
    func replay(_ count: Int, _ second: Marbles) throws {
        let shared = stage.emitter("-a-b-c-d-|").share(replaying: count)
        let late = Late(shared, from: stage.signal("----s"))
        let merged = merge([Emitter(shared.map { _ in "" }), Emitter(late)])
        let observed = try stage.observe(merged)
        let marks = observed.marks.filter { $0.event != .element("") }
        #expect(Marbles(marks: marks) == second)
    }

    @Test("a connected share stops with its last subscriber; the next one begins a new iteration")
    func connected() throws {
        let shared = stage.emitter("        -a-b-c-d-|").share(replaying: 2)
        let signal = stage.signal("         ----s----------|")
        let result = publishAndRepeat(onOutputFrom: signal) { shared }
        try stage.expect(result, "          -a-b-a-b-c-d---|")
    }

    @Test("a share for ever keeps its elements and its end")
    func forever() throws {
        let shared = stage.emitter("        -a-b-c-d-|").share(replaying: 2, while: .forever)
        let signal = stage.signal("         ----s---------s|")
        let result = publishAndRepeat(onOutputFrom: signal) { shared }
        try stage.expect(result, "          -a-b(ab)c-d------(cd)|")
    }

    @Test("a share for ever keeps its failure")
    func foreverFailure() throws {
        let shared = stage.emitter("        -a-x").share(replaying: 1, while: .forever)
        let signal = stage.signal("         -----s")
        let result = publishAndRepeat(onOutputFrom: signal) { shared.replaceFailure() }
        try stage.expect(result, "          -a-f-(af)")
    }

    @Test(
        "a slow subscriber loses its oldest elements, because the fast one sets the pace",
        arguments: [
            (0, "a-------e" as Marbles), (1, "a-------e"), (2, "a-------d"), (3, "a-------c"), (9, "a-------b"),
        ])
    func slow(_ count: Int, _ expected: Marbles) throws {
        let shared = stage.emitter("abcde---|").share(replaying: count)
        let log = Attempts()
        // The fast subscriber.
        let task = Task(executorPreference: stage.executor) { for try await _ in shared { _ = log.next() } }
        try stage.expect(shared, expected, consumer: "^-------^", name: { $0 })
        task.cancel()
        try stage.executor.runUntilIdle()
        #expect(log.next() == 6)
    }
}

/// A sequence that subscribes to its base when a signal fires.
private struct Late<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable {
    typealias Element = Base.Element
    typealias Failure = Base.Failure

    let base: Base
    let signal: Signal

    init(_ base: Base, from signal: Signal) {
        self.base = base
        self.signal = signal
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: base, signal: signal.makeAsyncIterator())
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        let base: Base
        var signal: Signal.AsyncIterator
        var iterator: Base.AsyncIterator?

        mutating func next(isolation: isolated (any Actor)? = #isolation) async throws(Failure) -> Element? {
            if iterator == nil {
                guard await signal.next(isolation: isolation) != nil else { return nil }
                iterator = base.makeAsyncIterator()
            }
            return try await iterator?.next(isolation: isolation)
        }
    }
}

extension AsyncSequence where Self: Sendable, Element == String {
    /// The sequence with a last element `f` instead of a failure.
    fileprivate func replaceFailure() -> Emitter<String, Never> {
        Emitter(ReplacedFailure(base: self))
    }
}

private struct ReplacedFailure<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable where Base.Element == String {
    typealias Element = String
    typealias Failure = Never

    let base: Base

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: base.makeAsyncIterator())
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: Base.AsyncIterator

        mutating func next(isolation: isolated (any Actor)? = #isolation) async -> String? {
            do { return try await base.next(isolation: isolation) } catch { return "f" }
        }
    }
}
