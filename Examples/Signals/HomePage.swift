public import FreshetSignals

/// A page of topics, and for each topic a row of media that comes by pages.
public struct HomePage: Sendable {
    /// One row. Without media it is a placeholder, or, with a fault, a row that could not be loaded yet.
    public struct Row: Sendable, Equatable {
        public var topic: String
        public var media: [String]?
        public var fault: String?
    }

    /// What is shown. While it loads, and after it failed, that is what was there before.
    public enum State: Sendable, Equatable {
        case loading([Row])
        case loaded([Row])
        case failed(String, [Row])
    }

    let topics: Emitter<[String], any Error>
    let media: @Sendable (_ topic: String, _ cursor: Int?) async throws -> Page<String, Int>
    let more = Trigger("more")

    /// - Parameters:
    ///   - topics: Delivers the topics, without a repetition among them.
    ///   - media: Loads a page of a topic's media: the first one, or the one to which a cursor leads.
    public init(
        topics: Emitter<[String], any Error>,
        media: @escaping @Sendable (_ topic: String, _ cursor: Int?) async throws -> Page<String, Int>
    ) {
        self.topics = topics
        self.media = media
    }

    /// Asks for a further page of one row.
    public func loadMore(of topic: String) {
        more.activate(for: topic)
    }

    /// The page: at once, and anew at each of the three signals, which cancels all that is under way.
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

    /// One row: a placeholder, its first page, then one more page each time it is asked for.
    func row(_ topic: String) -> some AsyncSequence<Row, Never> & Sendable {
        paginated(
            by: more.signal(activatedBy: topic),
            first: { try await media(topic, nil) },
            next: { try await media(topic, $0) }
        )
        .scan([]) { $0 + $1 }
        .map { Row(topic: topic, media: $0) }
        .replaceError { Row(topic: topic, fault: "\($0)") }
        .prepend(Row(topic: topic))
    }
}

extension HomePage.State {
    /// What is shown, whatever goes on.
    public var rows: [HomePage.Row] {
        switch self {
        case .loading(let rows), .loaded(let rows), .failed(_, let rows): rows
        }
    }

    /// This state, with the last good media in each row that has none of its own.
    func keeping(_ old: [HomePage.Row]) -> Self {
        switch self {
        case .loading: return .loading(old)
        case .failed(let fault, _): return .failed(fault, old)
        case .loaded(var rows):
            let media = Dictionary(old.map { ($0.topic, $0.media) }) { first, _ in first }
            for index in rows.indices where rows[index].media == nil {
                rows[index].media = media[rows[index].topic] ?? nil
            }
            return .loaded(rows)
        }
    }
}
