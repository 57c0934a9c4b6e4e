import FreshetModel
import FreshetPipelines

/// Decides when an access token is used, and when a new one is requested. One caller at a time asks and requests.
struct TokenMachine {
    typealias Instant = BootInstant

    /// The longest time that a token is used without a statement of its server.
    static let longestUse: Duration = .seconds(3_600)
    /// A token is replaced this time before its end, or after nine tenths of its life if that is later: a request takes
    /// time, and clocks differ.
    static let margin: Duration = .seconds(30)

    enum Action: Hashable {
        case use(String)
        case fail(RunFailure)
        case request
    }

    private var token: (value: String, end: Instant)?
    /// How many requests for a token have ended. A caller notes it before it waits for its turn.
    private(set) var attempts: UInt64 = 0
    /// The failure of the last request; nil: it succeeded.
    private var failure: RunFailure?

    /// A caller needs a token.
    ///
    /// - Parameters:
    ///   - arrival: ``attempts`` when the caller began to wait: it shares the result of a request that has ended since.
    ///   - refused: a token that the origin has refused; nil: none.
    mutating func ask(since arrival: UInt64, refused: String?, at now: Instant) -> Action {
        if let token, arrival < attempts || token.value != refused && now < token.end { return .use(token.value) }
        if arrival < attempts, let failure { return .fail(failure) }
        return .request
    }

    /// The request has ended with a token.
    ///
    /// - Parameters:
    ///   - life: how long it is valid, as the server says; nil: it does not say.
    ///   - start: when the request began.
    mutating func received(_ value: String, life: Duration?, from start: Instant) {
        attempts += 1
        failure = nil
        let life = life ?? Self.longestUse
        token = (value, start.advanced(by: max(life - Self.margin, life * 9 / 10)))
    }

    /// The request has ended without a token.
    mutating func failed(_ reason: RunFailure) {
        attempts += 1
        failure = reason
        token = nil
    }
}
