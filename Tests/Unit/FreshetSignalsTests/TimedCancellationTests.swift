import FreshetSignals
import FreshetTestKit
import Testing

@Suite("A timed or retrying operator that is cancelled at any suspension point leaves nothing behind")
struct TimedCancellationTests {
    @Test("wait(untilOutputFrom:)")
    func wait() {
        let jobs = cancellationSweep(
            of: { $0.numbers(on: "numbers", count: 2).wait(untilOutputFrom: $0.signal("gate")) },
            events: [
                { $0.source("numbers").fire() }, { $0.source("gate").fire() }, { $0.source("numbers").fire() },
                { $0.source("gate").fire() }, { $0.source("numbers").fire() }, { $0.source("numbers").fire() },
            ])
        #expect(jobs > 5)
    }

    @Test("wait(untilOutputFrom:) for a signal that ends")
    func waitInVain() {
        cancellationSweep(
            of: { $0.numbers(on: "numbers", count: 2).wait(untilOutputFrom: $0.signal("gate")) },
            events: [{ $0.source("gate").finish() }])
    }

    @Test("debounce, to the upstream's end and failure", arguments: [false, true], [false, true])
    func debounce(leading: Bool, fails: Bool) {
        let jobs = cancellationSweep(
            of: { stage in
                stage.numbers(on: "numbers", count: 4, fails: fails)
                    .debounce(for: .seconds(2), atMost: .seconds(3), leading: leading, clock: stage.clock)
            },
            events: [
                { $0.source("numbers").fire() }, { $0.clock.advance(by: .seconds(1)) },
                { $0.source("numbers").fire() }, { $0.clock.advance(by: .seconds(2)) },
                { $0.source("numbers").fire() }, { $0.clock.advance(by: .seconds(9)) },
                { $0.source("numbers").fire() }, { $0.source("numbers").fire() },
            ])
        #expect(jobs > 15)
    }

    @Test("throttle, to the upstream's end and failure", arguments: [false, true], [false, true])
    func throttle(latest: Bool, fails: Bool) {
        let jobs = cancellationSweep(
            of: { stage in
                stage.numbers(on: "numbers", count: 4, fails: fails)
                    .throttle(for: .seconds(2), latest: latest, clock: stage.clock)
            },
            events: [
                { $0.source("numbers").fire() }, { $0.source("numbers").fire() },
                { $0.clock.advance(by: .seconds(1)) }, { $0.source("numbers").fire() },
                { $0.clock.advance(by: .seconds(1)) }, { $0.source("numbers").fire() },
                { $0.source("numbers").fire() }, { $0.clock.advance(by: .seconds(2)) },
            ])
        #expect(jobs > 15)
    }

    @Test("paginated, to its last page, to a failure and to the signal's end", arguments: ["last", "fault", "end"])
    func paginated(how: String) {
        let jobs = cancellationSweep(
            of: { stage in
                let token = Token(stage.held)
                let loads = Counter()
                let load: @Sendable (Int) async throws -> Page<Int, Int> = { cursor in
                    try await stage.clock.sleep(for: .seconds(1))
                    if loads.increment() == 3, how != "last" { throw SweepFailure() }
                    return withExtendedLifetime(token) { Page([cursor], next: cursor == 4 ? nil : cursor + 1) }
                }
                // Not a signal of the stage, because those have another type. Its subscriptions are still counted.
                return FreshetSignals.paginated(
                    by: stage.source("more").signal, initially: 2, first: { try await load(1) }, next: load)
            },
            events: [
                { $0.clock.advance(by: .seconds(1)) }, { $0.clock.advance(by: .seconds(1)) },
                { $0.source("more").fire() }, { $0.clock.advance(by: .seconds(1)) },
                { if how == "end" { $0.source("more").finish() } else { $0.source("more").fire() } },
                { $0.clock.advance(by: .seconds(1)) }, { $0.source("more").fire() },
                { $0.clock.advance(by: .seconds(1)) }, { $0.source("more").finish() },
            ])
        #expect(jobs > 10)
    }

    @Test("retry(on:), to the end of an attempt and to the signal's end", arguments: [1, 9])
    func retry(errors: Int) {
        let jobs = cancellationSweep(
            of: { stage in
                let attempts = Counter()
                return Making { stage.numbers(on: "numbers", count: 1, fails: attempts.increment() <= errors) }
                    .retry(on: stage.signal("again"))
            },
            events: [
                { $0.source("numbers").fire() }, { $0.source("numbers").fire() }, { $0.source("again").fire() },
                { $0.source("numbers").fire() }, { $0.source("again").fire() }, { $0.source("again").fire() },
                { $0.source("numbers").fire() }, { $0.source("again").finish() }, { $0.source("numbers").fire() },
                { $0.source("numbers").fire() },
            ])
        #expect(jobs > 15)
    }

    @Test("prepend, scan, replaceError and removeDuplicates")
    func plain() {
        cancellationSweep(
            of: { stage in
                stage.numbers(on: "numbers", count: 2, fails: true)
                    .prepend(7, 8).removeDuplicates().scan(0) { $0 + $1 }.replaceError(with: 9)
            }, events: Array(repeating: { $0.source("numbers").fire() }, count: 3))
    }

    @Test("nested operators")
    func nested() {
        let jobs = cancellationSweep(
            of: { stage in
                let outputs = stage.signal("signal").debounce(for: .seconds(1), atMost: nil, clock: stage.clock)
                let attempts = Counter()
                return Making { stage.numbers(on: "numbers", count: 2, fails: attempts.increment() == 1) }
                    .throttle(for: .seconds(1), latest: true, clock: stage.clock)
                    .retry(on: outputs)
                    .wait(untilOutputFrom: outputs)
            },
            events: [
                { $0.source("signal").fire() }, { $0.clock.advance(by: .seconds(1)) },
                { $0.source("numbers").fire() }, { $0.source("numbers").fire() },
                { $0.clock.advance(by: .seconds(1)) }, { $0.source("numbers").fire() },
                { $0.source("signal").fire() }, { $0.clock.advance(by: .seconds(1)) },
                { $0.source("numbers").fire() }, { $0.source("numbers").fire() }, { $0.source("numbers").fire() },
                { $0.clock.advance(by: .seconds(1)) },
            ])
        #expect(jobs > 30)
    }
}

/// A sequence that makes a different base for each iteration.
struct Making<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable {
    typealias Element = Base.Element
    typealias Failure = Base.Failure

    let make: @Sendable () -> Base

    init(_ make: @escaping @Sendable () -> Base) {
        self.make = make
    }

    func makeAsyncIterator() -> Base.AsyncIterator {
        make().makeAsyncIterator()
    }
}
