public import FreshetSignals

/// A search with two parameters, which runs when the parameters have not changed for a while.
public struct Search: Sendable {
    /// The parameters of a search.
    public struct Query: Sendable, Equatable {
        public var text: String
        public var shelf: String
    }

    /// The state of the latest attempt.
    public enum State: Sendable, Equatable {
        case loading
        case loaded([String])
        case failed(String)
    }

    /// The parameters; the user interface sets them.
    public let text = CurrentValue("")
    public let shelf = CurrentValue("all")

    let find: @Sendable (Query) async throws -> [String]

    /// - Parameter find: Searches. It is cancelled when a newer query replaces its query.
    public init(find: @escaping @Sendable (Query) async throws -> [String]) {
        self.find = find
    }

    /// The states: an attempt for each query, and one immediately at each reload.
    public func states(
        reload: Signal, quiet: Duration = .milliseconds(300), clock: some Clock<Duration> = ContinuousClock()
    ) -> some AsyncSequence<State, Never> & Sendable {
        combineLatest(text, shelf)
            .map { Query(text: $0, shelf: $1) }
            .removeDuplicates()  // a value that did not change does not prolong the quiet period
            .debounce(for: quiet, atMost: nil, clock: clock)
            .removeDuplicates()  // a query that was changed back does not run again
            .map { query in publishAndRepeat(onOutputFrom: reload) { attempt(query) } }
            .switchToLatest()
    }

    /// One attempt. Its failure is a state, so the next query still runs.
    func attempt(_ query: Query) -> some AsyncSequence<State, Never> & Sendable {
        Emitter<[String], any Error>.once { try await find(query) }
            .map { State.loaded($0) }
            .replaceError { .failed("\($0)") }
            .prepend(.loading)
    }
}
