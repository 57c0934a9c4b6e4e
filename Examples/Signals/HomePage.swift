public import FreshetSignals

/// A page of topics. Each topic has a row of media that is loaded page by page.
public struct HomePage: Sendable {
    /// One row. A row without media is a placeholder, or, with an error, a row that could not be loaded yet.
    public struct Row: Sendable, Equatable {
        public var topic: String
        public var media: [String]?
        public var error: String?
    }

    /// The state of the page. During a load and after a failure it has the previous rows.
    public enum State: Sendable, Equatable {
        case loading([Row])
        case loaded([Row])
        case failed(String, [Row])
    }

    let topics: Emitter<[String], any Error>
    let media: @Sendable (_ topic: String, _ cursor: Int?) async throws -> Page<String, Int>
    let more = Trigger("more")

    /// - Parameters:
    ///   - topics: Delivers the topics, without duplicates.
    ///   - media: Loads a page of a topic's media: the first page, or the page of a cursor.
    public init(
        topics: Emitter<[String], any Error>,
        media: @escaping @Sendable (_ topic: String, _ cursor: Int?) async throws -> Page<String, Int>
    ) {
        self.topics = topics
        self.media = media
    }

    /// Requests a further page of one row.
    public func loadMore(of topic: String) {
        more.activate(for: topic)
    }

    /// The states of the page. Each of the three signals cancels all loads in progress and loads the page again.
    public func states(
        appeared: Signal, networkChanged: Signal, pulled: Signal
    ) -> some AsyncSequence<State, Never> & Sendable {
        publishAndRepeat(onOutputFrom: Signal.merge(appeared, networkChanged, pulled)) {
            topics
                .map { topics in accumulateLatestMany(topics.map(row)) }
                .switchToLatest()
                .map { State.loaded($0) }
                .replaceError { .failed("\($0)", []) }
                .prepend(.loading([]))
        }
        .scan(.loading([])) { last, next in next.keeping(last.rows) }
        .removeDuplicates()
    }

    /// One row: a placeholder, its first page, then one more page for each request.
    func row(_ topic: String) -> some AsyncSequence<Row, Never> & Sendable {
        paginated(
            by: more.signal(activatedBy: topic),
            first: { try await media(topic, nil) },
            next: { try await media(topic, $0) }
        )
        .scan([]) { $0 + $1 }
        .map { Row(topic: topic, media: $0) }
        .replaceError { Row(topic: topic, error: "\($0)") }
        .prepend(Row(topic: topic))
    }
}

extension HomePage.State {
    /// The rows of any state.
    public var rows: [HomePage.Row] {
        switch self {
        case .loading(let rows), .loaded(let rows), .failed(_, let rows): rows
        }
    }

    /// This state. Rows without media get the last media of the same topic.
    func keeping(_ old: [HomePage.Row]) -> Self {
        switch self {
        case .loading: return .loading(old)
        case .failed(let error, _): return .failed(error, old)
        case .loaded(var rows):
            let media = Dictionary(old.map { ($0.topic, $0.media) }) { first, _ in first }
            for index in rows.indices where rows[index].media == nil {
                rows[index].media = media[rows[index].topic] ?? nil
            }
            return .loaded(rows)
        }
    }
}
