public import FreshetSignals
import FreshetSystemSignals

/// A forecast that is fresh when it can be.
public struct Forecast: Sendable {
    let load: @Sendable () async throws -> String

    public init(load: @escaping @Sendable () async throws -> String) {
        self.load = load
    }

    /// Loaded at once; and again when the network is back or is another one, when the machine woke up, and each hour.
    public func texts() -> some AsyncSequence<String, Never> & Sendable {
        let reasons = Signal.merge(Reachability.signal, Sleep.resumed, Timers.every(.seconds(3_600)).signal)
        return texts(reloadedOn: reasons)
    }

    /// The same, for reasons of your own.
    public func texts(reloadedOn reasons: Signal) -> some AsyncSequence<String, Never> & Sendable {
        publishAndRepeat(onOutputFrom: reasons) {
            Emitter<String, any Error>.once(load).replaceError { "no forecast: \($0)" }
        }
    }
}
