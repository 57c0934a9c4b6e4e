import FreshetSignals
import FreshetTestKit
import Testing

/// Typical calls: this file compiles only if each call finds its overload, with the expected failure type.
@Suite("The public API")
struct FaceTests {
    struct NetworkError: Error {}
    static func load() async throws -> [Int] { [1, 2] }

    func neverFails(_ signal: Signal?) -> some AsyncSequence<Int, Never> & Sendable {
        publishAndRepeat(onOutputFrom: signal) { Emitter<Int, Never>.once { 1 } }
    }
    func withoutSignal() -> some AsyncSequence<Int, Never> & Sendable {
        publishAndRepeat(onOutputFrom: nil) { Emitter<Int, Never>.once { 1 } }
    }
    func mayThrow(_ signal: Signal) -> some AsyncSequence<Int, any Error> & Sendable {
        publishAndRepeat(onOutputFrom: signal) {
            if Task.isCancelled { throw NetworkError() }
            return Emitter<Int, any Error>.once { 1 }
        }
    }
    func mayThrowTyped(_ signal: Signal) -> some AsyncSequence<Int, NetworkError> & Sendable {
        publish(onOutputFrom: signal) { () throws(NetworkError) in
            if Task.isCancelled { throw NetworkError() }
            return Emitter<Int, NetworkError>.once { 1 }
        }
    }
    func oneValue(_ signal: Signal) -> some AsyncSequence<[Int], any Error> & Sendable {
        publishAndRepeat(onOutputFrom: signal) { try await Self.load() }
    }
    func oneValueWithoutSignal() -> some AsyncSequence<[Int], any Error> & Sendable {
        publishAndRepeat(onOutputFrom: nil) { try await Self.load() }
    }
    func derived(_ signal: Signal, _ value: CurrentValue<Int>) -> some AsyncSequence<Int, Never> & Sendable {
        publish(onOutputFrom: value.removeDuplicates()) { Emitter<Int, Never>.once { 1 } }
    }
    func coalesced(_ signal: Signal) -> some AsyncSequence<Int, Never> & Sendable {
        publish(onOutputFrom: signal.coalesced()) { Emitter<Int, Never>.once { 1 } }
    }

    @Test("one signal, its views and its sequences in one program")
    func program() throws {
        let source = SignalSource("s")
        let trigger = Trigger()
        let value = CurrentValue([1])
        value.update { $0.append(2) }
        let emitters: [Emitter<[Int], Never>] = [Emitter(value), .once { [3] }]
        let seen = try SerialTestExecutor().run {
            var seen: [[Int]] = []
            for emitter in emitters {
                for await element in emitter {
                    seen.append(element)
                    value.finish()
                }
            }
            for await _ in neverFails(nil) { seen.append([4]) }
            for await _ in withoutSignal() { seen.append([5]) }
            for try await element in oneValueWithoutSignal() { seen.append(element) }
            for try await element in oneValue(.merge()) { seen.append(element) }
            for try await _ in mayThrow(.merge([])) { seen.append([6]) }
            for try await _ in mayThrowTyped(.merge()) { seen.append([7]) }
            for await _ in derived(.never, CurrentValue(1)) {
                seen.append([8])
                break
            }
            for await _ in coalesced(.merge()) { seen.append([9]) }
            return seen
        }
        #expect(seen == [[1, 2], [3], [4], [5], [1, 2], [1, 2], [6], [8]])
        let subscription = Signal.merge(source.signal, trigger.signal(activatedBy: "id")).makeAsyncIterator()
        #expect(source.fire("detail") + trigger.activate(for: "id", "detail") == 2)
        withExtendedLifetime(subscription) {}
    }
}
