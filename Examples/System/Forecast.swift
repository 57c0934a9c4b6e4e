public import FreshetSignals
import FreshetSystemSignals

/// A weather forecast that is loaded again whenever there is a reason.
public struct Forecast: Sendable {
    let load: @Sendable () async throws -> String

    public init(load: @escaping @Sendable () async throws -> String) {
        self.load = load
    }

    /// Loads immediately, then when the network is back or is another one, when the machine resumes, and each hour.
    public func texts() -> some AsyncSequence<String, Never> & Sendable {
        let reasons = Signal.merge(Reachability.signal, Sleep.resumed, Timers.every(.seconds(3_600)).signal)
        return texts(reloadedOn: reasons)
    }

    /// The same with other reasons.
    public func texts(reloadedOn reasons: Signal) -> some AsyncSequence<String, Never> & Sendable {
        publishAndRepeat(onOutputFrom: reasons) {
            Emitter<String, any Error>.once(load).replaceError { "no forecast: \($0)" }
        }
    }
}
