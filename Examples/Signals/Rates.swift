public import FreshetSignals

/// Rates of exchange: loaded at once, and again whenever the network changes or somebody asks.
public struct Rates: Sendable {
    /// What came of the latest attempt.
    public enum State: Sendable, Equatable {
        case loading
        case loaded([String])
        case failed(String)
    }

    let load: @Sendable () async throws -> [String]

    public init(load: @escaping @Sendable () async throws -> [String]) {
        self.load = load
    }

    /// One attempt. Its failure is a state, and so not the end.
    func attempt() -> some AsyncSequence<State, Never> & Sendable {
        Emitter<[String], any Error>.once(load)
            .map { State.loaded($0) }
            .replaceError { .failed("\($0)") }
            .prepend(.loading)
    }

    /// An attempt at once, and one at each signal, which cancels the one under way.
    public func states(networkChanged: Signal, asked: Signal) -> some AsyncSequence<State, Never> & Sendable {
        publishAndRepeat(onOutputFrom: Signal.merge(networkChanged, asked)) { attempt() }
    }

    /// The same for a link that flaps: the first change passes at once, those of a storm are one.
    public func calmStates(
        networkChanged: Signal, asked: Signal, clock: some Clock<Duration> = ContinuousClock()
    ) -> some AsyncSequence<State, Never> & Sendable {
        let calm = networkChanged.debounce(for: .seconds(2), atMost: .seconds(10), leading: true, clock: clock)
        return publishAndRepeat(onOutputFrom: merge([Emitter(calm), Emitter(asked)])) { attempt() }
    }

    /// Shows the states until the calling task is cancelled.
    public func run(networkChanged: Signal, asked: Signal, show: (State) -> Void) async {
        for await state in states(networkChanged: networkChanged, asked: asked) {
            show(state)
        }
    }
}
