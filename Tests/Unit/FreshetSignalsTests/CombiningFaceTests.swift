import FreshetSignals
import FreshetTestKit
import Testing

/// Typical calls: this file compiles only if each call finds its overload, with the expected failure type.
@Suite("The public API of the combining operators")
struct CombiningFaceTests {
    struct NetworkError: Error {}
    static func load() async throws -> [Int] { [1, 2] }
    typealias Fallible = Emitter<Int, any Error>

    func neither(_ signal: Signal, _ value: CurrentValue<Int>) -> some AsyncSequence<Int, Never> & Sendable {
        signal.withLatestFrom(value).map { $0.1 }
    }
    func upstreamMay(_ upstream: Fallible, _ value: CurrentValue<Int>) -> some AsyncSequence<Int, any Error> & Sendable
    {
        upstream.withLatestFrom(value).map { $0.0 + $0.1 }
    }
    func otherMay(_ signal: Signal, _ other: Fallible) -> some AsyncSequence<Int, any Error> & Sendable {
        signal.withLatestFrom(other).map { $0.1 }
    }
    func bothMay(_ upstream: Fallible, _ other: Fallible) -> some AsyncSequence<Int, any Error> & Sendable {
        upstream.withLatestFrom(other).map { $0.0 + $0.1 }
    }
    func refresh(_ signal: Signal, _ value: CurrentValue<Int>) -> some AsyncSequence<Int, Never> & Sendable {
        merge([Emitter(value), Emitter(signal.withLatestFrom(value).map { $0.1 })])
    }
    func searches(_ queries: CurrentValue<Int>) -> some AsyncSequence<[Int], any Error> & Sendable {
        queries.map { _ in Emitter.once { try await Self.load() } }.switchToLatest()
    }
    func outerMay(_ outer: Fallible) -> some AsyncSequence<Int, any Error> & Sendable {
        outer.map { number in Emitter.once { number } }.switchToLatest()
    }
    func innerMay(_ outer: Fallible) -> some AsyncSequence<Int, any Error> & Sendable {
        outer.map { number in Fallible.once { number } }.switchToLatest()
    }
    func typed(_ a: Emitter<Int, NetworkError>) -> some AsyncSequence<[Int], NetworkError> & Sendable {
        accumulateLatestMany([a, a])
    }
    func form(_ a: CurrentValue<String>, _ b: CurrentValue<Int>) -> some AsyncSequence<String, Never> & Sendable {
        combineLatest(a, b, a).map { "\($0)\($1)\($2)" }
    }
    func shared(_ a: Fallible) -> some AsyncSequence<Int, any Error> & Sendable {
        a.share(replaying: 1, while: .forever)
    }
    func signals(_ signals: [Signal]) -> Signal { merge(signals) }
    func loads(_ signal: Signal) -> some AsyncSequence<[Int], any Error> & Sendable {
        publishAndRepeat(onOutputFrom: signal.coalesced()) { try await Self.load() }
    }
    func published(_ value: CurrentValue<Int>) -> some AsyncSequence<[Int], any Error> & Sendable {
        publish(onOutputFrom: value) { try await Self.load() }
    }

    @Test("sequences made of one another")
    func program() throws {
        let (source, value) = (SignalSource("s"), CurrentValue(1))
        source.finish()
        value.finish()
        let (s, v) = (source.signal, value)
        let seen = try SerialTestExecutor().run {
            var seen: [String] = []
            for await element in neither(s, v) { seen.append("\(element)") }
            for try await element in upstreamMay(.once { 2 }, v) { seen.append("\(element)") }
            for try await element in otherMay(s, .once { 3 }) { seen.append("\(element)") }
            for try await element in bothMay(.once { 3 }, .once { 4 }) { seen.append("\(element)") }
            for await element in refresh(s, v) { seen.append("\(element)") }
            for try await element in searches(v) { seen.append("\(element)") }
            for try await element in outerMay(.once { 5 }) { seen.append("\(element)") }
            for try await element in innerMay(.once { 6 }) { seen.append("\(element)") }
            for try await element in typed(.once { 7 }) { seen.append("\(element)") }
            for await element in form(CurrentValue("a").finished, v) { seen.append(element) }
            for try await element in shared(.once { 8 }) { seen.append("\(element)") }
            for await _ in signals([s, s]) { seen.append("fired") }
            for try await element in loads(s) { seen.append("\(element)") }
            for try await element in published(v) { seen.append("\(element)") }
            return seen
        }
        #expect(seen == ["3", "7", "1", "[1, 2]", "5", "6", "[7, 7]", "a1a", "8", "[1, 2]", "[1, 2]"])
    }
}

extension CurrentValue {
    fileprivate var finished: CurrentValue {
        finish()
        return self
    }
}
