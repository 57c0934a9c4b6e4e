public import FreshetSignals

/// A search with two parameters, which runs when they have come to rest.
public struct Search: Sendable {
    /// What is searched for.
    public struct Query: Sendable, Equatable {
        public var text: String
        public var shelf: String
    }

    /// What came of the latest attempt.
    public enum State: Sendable, Equatable {
        case loading
        case loaded([String])
        case failed(String)
    }

    /// The parameters, to be set by whoever types.
    public let text = CurrentValue("")
    public let shelf = CurrentValue("all")

    let find: @Sendable (Query) async throws -> [String]

    /// - Parameter find: Searches. It is cancelled when its query is no longer the one.
    public init(find: @escaping @Sendable (Query) async throws -> [String]) {
        self.find = find
    }

    /// The states: an attempt for each query, and one at once at each reload.
    public func states(
        reload: Signal, quiet: Duration = .milliseconds(300), clock: some Clock<Duration> = ContinuousClock()
    ) -> some AsyncSequence<State, Never> & Sendable {
        combineLatest(text, shelf)
            .map { Query(text: $0, shelf: $1) }
            .removeDuplicates()  // what did not change does not prolong the quiet
            .debounce(for: quiet, atMost: nil, clock: clock)
            .removeDuplicates()  // what was changed and changed back is not searched again
            .map { query in publishAndRepeat(onOutputFrom: reload) { attempt(query) } }
            .switchToLatest()
    }

    /// One attempt. Its failure is a state, so that the next query is heard.
    func attempt(_ query: Query) -> some AsyncSequence<State, Never> & Sendable {
        Emitter<[String], any Error>.once { try await find(query) }
            .map { State.loaded($0) }
            .replaceError { .failed("\($0)") }
            .prepend(.loading)
    }
}
