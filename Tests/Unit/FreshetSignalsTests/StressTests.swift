import FreshetTestKit
import TestSupport
import Testing

@testable import FreshetSignals

/// Real threads, for effects that the serial executor cannot show; run them under the thread sanitizer, too.
@Suite("Signals from many threads")
struct StressTests {
    static let firersCount = 4
    static let firingsEach = 2_000

    /// Fires from several tasks at the same time, then finishes.
    func fireAll(_ sources: [SignalSource]) async {
        await withTaskGroup(of: Void.self) { group in
            for firer in 0..<Self.firersCount {
                group.addTask {
                    for number in 0..<Self.firingsEach {
                        sources[(firer + number) % sources.count].fire()
                    }
                }
            }
        }
        for source in sources { source.finish() }
    }

    @Test("no firing is lost and none is added, in any view")
    func counts() async {
        let sources = ["a", "b", "c"].map { SignalSource($0) }
        let signal = Signal.merge(sources.map(\.signal))
        let total = Self.firersCount * Self.firingsEach
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                let firings = Handed(signal.makeAsyncIterator())
                group.addTask {
                    guard var iterator = firings.take() else { return }
                    var count = 0
                    while await iterator.next() != nil { count += 1 }
                    #expect(count == total)
                }
                let causes = Handed(signal.causes.makeAsyncIterator())
                group.addTask {
                    guard var iterator = causes.take() else { return }
                    var last: [String: UInt64] = [:]
                    while let causes = await iterator.next(isolation: #isolation) {
                        #expect(Set(causes.map(\.first.signal)).count == causes.count)
                        for cause in causes {
                            #expect(cause.first.number == last[cause.first.signal, default: 0] + 1)
                            #expect(cause.last.number == cause.first.number + UInt64(cause.count) - 1)
                            last[cause.first.signal] = cause.last.number
                        }
                    }
                    #expect(last.values.reduce(0, +) == UInt64(total))
                }
                let coalesced = Handed(signal.coalesced().makeAsyncIterator())
                group.addTask {
                    guard var iterator = coalesced.take() else { return }
                    var count = 0
                    while await iterator.next(isolation: #isolation) != nil { count += 1 }
                    #expect((1...total).contains(count))
                }
            }
            group.addTask { await fireAll(sources) }
        }
    }

    @Test("subscribers that come, are cancelled and go while a trigger fires leave nothing behind")
    func churn() async {
        let trigger = Trigger()
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    for number in 0..<500 {
                        let signal = trigger.signal(activatedBy: number % 3)
                        let task = Task(executorPreference: nil) {
                            for await _ in signal { break }
                        }
                        trigger.activate(for: (number + worker) % 3)
                        task.cancel()
                        await task.value
                    }
                }
            }
        }
        #expect(trigger.identifierCount == 0)
    }

    @Test("publish under many firings, cancelled at any moment, always ends and leaves nothing behind")
    func publishUnderFire() async {
        let source = SignalSource("s")
        let current = CurrentValue(0)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    for number in 0..<200 {
                        let sequence = publishAndRepeat(onOutputFrom: source.signal) { current }
                        let task = Task(executorPreference: nil) {
                            var seen = 0
                            for await _ in sequence {
                                seen += 1
                                if seen == number % 5 + 1 { break }
                            }
                        }
                        source.fire()
                        current.update { $0 += 1 }
                        if (number + worker) % 2 == 0 { task.cancel() }
                        source.fire()
                        current.update { $0 += 1 }
                        if number % 5 > 1 { task.cancel() }
                        task.cancel()
                        await task.value
                    }
                }
            }
        }
        // A dropped iterator cannot be awaited: give its driver time to end.
        #expect(await eventually { source.fire() == 0 && current.readerCount == 0 })
    }

    @Test("a slow reader of a value with many writers sees it grow and ends with the last")
    func currentValue() async {
        let current = CurrentValue(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    var last = -1
                    for await value in current {
                        #expect(value > last)
                        last = value
                    }
                    #expect(last == Self.firersCount * Self.firingsEach)
                }
            }
            await withTaskGroup(of: Void.self) { firers in
                for _ in 0..<Self.firersCount {
                    firers.addTask { for _ in 0..<Self.firingsEach { current.update { $0 += 1 } } }
                }
            }
            current.finish()
        }
    }
}
