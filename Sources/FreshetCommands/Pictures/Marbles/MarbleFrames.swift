import FreshetControl
import FreshetRender

/// An episode as lanes of frames, in the notation of `Marbles` in FreshetTestKit.
struct MarbleFrames: Hashable, Sendable {
    struct Lane: Hashable, Sendable {
        enum Kind: Hashable, Sendable {
            case source, gathered
            /// The run at this index of the episode.
            case run(Int)
        }

        var name: String
        var kind: Kind
        /// The events of each frame, in order.
        var events: [[Event]]
    }

    enum Event: Hashable, Sendable {
        /// The signal at this index of the episode.
        case marble(Int)
        /// The signals at these indices, gathered into one; the run at this index begins with them.
        case gathered([Int], run: Int)
        case begins
        /// The number of the new generation.
        case copy(Int64)
        case ends
        case fails
        case isCutShort
    }

    /// The length of a frame, in microseconds.
    var length: Int64
    /// The beginning of the first frame.
    var start: Int64
    var count: Int
    var lanes: [Lane]

    /// The most runs that are drawn.
    static let mostRuns = 20

    /// - Parameter length: the length of a frame.
    init(_ episode: MarbleDiagram.Episode, length: Int64) {
        self.length = length
        // One empty frame at each end shows that the episode is complete.
        start = episode.from - length
        count = Int((episode.to - start) / length) + 2
        let (start, count) = (start, count)
        func frame(_ instant: Int64) -> Int { max(0, min(count - 1, Int((instant - start) / length))) }
        let none = [[Event]](repeating: [], count: count)
        lanes = []
        for (place, marble) in episode.marbles.enumerated() {
            let lane =
                lanes.firstIndex { $0.name == marble.source }
                ?? {
                    lanes.append(Lane(name: marble.source, kind: .source, events: none))
                    return lanes.count - 1
                }()
            lanes[lane].events[frame(marble.at)].append(.marble(place))
        }
        var gathered = Lane(name: "gathered", kind: .gathered, events: none)
        var runs: [Lane] = []
        for (place, run) in episode.runs.enumerated().prefix(Self.mostRuns) {
            let own = episode.marbles.indices.filter { episode.marbles[$0].outcome == .run(place) }
            // A retry gathers no signals.
            if !own.isEmpty || run.repeats == nil {
                gathered.events[frame(run.started)].append(.gathered(own, run: place))
            }
            var lane = Lane(name: "run \(run.number)", kind: .run(place), events: none)
            lane.events[frame(run.started)].append(.begins)
            if let ended = run.ended {
                let last = frame(ended)
                switch run.outcome {
                case .changed?:
                    if let generation = run.generation { lane.events[last].append(.copy(generation)) }
                    lane.events[last].append(.ends)
                case .unchanged?: lane.events[last].append(.ends)
                case .failed?: lane.events[last].append(.fails)
                case .superseded?, .cancelled?, .unknown?, nil: lane.events[last].append(.isCutShort)
                }
            }
            runs.append(lane)
        }
        lanes.append(gathered)
        lanes += runs
    }

    /// The shortest frames with which the picture fits; at least a millisecond: shorter ones would show the order of
    /// the daemon's steps, and not the distance of events.
    ///
    /// - Parameters:
    ///   - most: the most columns of the picture.
    ///   - columns: the number of columns of a picture.
    static func fitting(
        _ episode: MarbleDiagram.Episode, most: Int, columns: (MarbleFrames) -> Int
    ) -> MarbleFrames {
        // For a single instant, any length is long enough.
        guard episode.to > episode.from else { return MarbleFrames(episode, length: 1_000) }
        let span = episode.to - episode.from
        let steps = TimeAxis.steps
        for step in steps where span / step < Int64(most) {
            let frames = MarbleFrames(episode, length: step)
            if columns(frames) <= most { return frames }
        }
        return MarbleFrames(episode, length: max(span, steps.last ?? 1))
    }

    // MARK: Text

    /// The text of each frame of a lane; `-` for a frame without events.
    func tokens(_ lane: Lane, _ episode: MarbleDiagram.Episode) -> [String] {
        lane.events.map { events in
            let texts = events.map { Self.text($0, episode) }
            switch texts.count {
            case 0: return "-"
            case 1: return texts[0]
            default: return "(\(texts.joined()))"
            }
        }
    }

    /// The lanes below one another: blanks, which do not count as frames, align tokens of several characters.
    func lines(_ episode: MarbleDiagram.Episode) -> [String] {
        let tokens = lanes.map { self.tokens($0, episode) }
        let widths = (0..<count).map { frame in tokens.map { $0[frame].count }.max() ?? 1 }
        return tokens.map { lane in
            zip(lane, widths).map { token, width in token + String(repeating: " ", count: width - token.count) }
                .joined()
        }
    }

    static func text(_ event: Event, _ episode: MarbleDiagram.Episode) -> String {
        switch event {
        case .marble(let place): name(episode.marbles[place])
        case .gathered(let places, _): gathered(places, episode)
        case .begins: "^"
        case .copy(let generation): generation < 10 && generation >= 0 ? "\(generation)" : "{\(generation)}"
        case .ends: "|"
        case .fails: "x"
        case .isCutShort: "!"
        }
    }

    /// Such as `a`, or `{a14}` for fourteen signals.
    private static func name(_ marble: MarbleDiagram.Marble) -> String {
        if marble.count > 1 { return "{\(marble.label)\(marble.count)}" }
        return marble.label.count == 1 ? marble.label : "{\(marble.label)}"
    }

    /// Such as `a`, `{ab}`, or `{a-n}` for many consecutive signals.
    private static func gathered(_ places: [Int], _ episode: MarbleDiagram.Episode) -> String {
        // The run has no known causes.
        guard let first = places.first, let last = places.last else { return "{?}" }
        if places.count == 1 { return name(episode.marbles[first]) }
        return "{\(names(places, from: first, to: last, episode))}"
    }

    private static func names(_ places: [Int], from first: Int, to last: Int, _ episode: MarbleDiagram.Episode)
        -> String
    {
        let labels = episode.marbles
        if places.count > 3, last - first + 1 == places.count { return "\(labels[first].label)-\(labels[last].label)" }
        return places.map { labels[$0].label }.joined()
    }
}
