public import FreshetSignals

/// Exchange rates: loaded immediately, and again whenever the network changes or the user reloads.
public struct Rates: Sendable {
    /// The state of the latest attempt.
    public enum State: Sendable, Equatable {
        case loading
        case loaded([String])
        case failed(String)
    }

    let load: @Sendable () async throws -> [String]

    public init(load: @escaping @Sendable () async throws -> [String]) {
        self.load = load
    }

    /// One attempt. Its failure is a state, so it does not end the sequence.
    func attempt() -> some AsyncSequence<State, Never> & Sendable {
        Emitter<[String], any Error>.once(load)
            .map { State.loaded($0) }
            .replaceError { .failed("\($0)") }
            .prepend(.loading)
    }

    /// One attempt immediately, and one at each signal, which cancels the attempt in progress.
    public func states(networkChanged: Signal, reload: Signal) -> some AsyncSequence<State, Never> & Sendable {
        publishAndRepeat(onOutputFrom: Signal.merge(networkChanged, reload)) { attempt() }
    }

    /// The same for an unstable link: the first change of a burst passes immediately, the others are delivered as one.
    public func debouncedStates(
        networkChanged: Signal, reload: Signal, clock: some Clock<Duration> = ContinuousClock()
    ) -> some AsyncSequence<State, Never> & Sendable {
        let quiet = networkChanged.debounce(for: .seconds(2), atMost: .seconds(10), leading: true, clock: clock)
        return publishAndRepeat(onOutputFrom: merge([Emitter(quiet), Emitter(reload)])) { attempt() }
    }

    /// Shows the states until the calling task is cancelled.
    public func run(networkChanged: Signal, reload: Signal, show: (State) -> Void) async {
        for await state in states(networkChanged: networkChanged, reload: reload) {
            show(state)
        }
    }
}
