import FreshetControl

/// What `top` shows and how: pipelines in an order, some of them filtered out, one of them chosen. Keys, answers of the
/// daemon and events go in; what is to be done comes out.
struct TopModel: Sendable {
    /// By what the rows are sorted.
    enum Order: String, CaseIterable, Hashable, Sendable {
        case name, state, checked, next, size
    }

    enum Action: Hashable, Sendable {
        case none, quit
        /// Run this pipeline.
        case refresh(String)
        /// Draw everything anew, whatever the terminal shows.
        case redraw
    }

    enum Page: Hashable, Sendable {
        case list, help
        /// All about the chosen one.
        case details
    }

    private(set) var order = Order.name
    private(set) var isReversed = false
    private(set) var filter = ""
    /// The filter is being typed.
    private(set) var isTyping = false
    private(set) var page = Page.list
    /// The name of the chosen pipeline.
    private(set) var chosen: String?
    /// The first row that is shown.
    private(set) var offset = 0
    var daemon: DaemonStatus?
    /// The last signal that fired.
    private(set) var signal: ControlEvent?
    /// What the last command came to.
    var message: String?
    /// The daemon is gone; why, and what helps. What is known of it is shown still, as what it is: old.
    private(set) var trouble: String?
    /// The daemon is there all the same, and refuses.
    private(set) var isThere = false
    /// When it was asked what it has not answered yet, if that is so long ago that it seems to hang.
    private(set) var silentSince: Int64?
    /// When it answered last.
    private(set) var answeredAt: Int64?

    /// What is shown is what was, and may not be so any more.
    var isOld: Bool { trouble != nil || silentSince != nil }
    /// How many rows fit.
    var room = 20 { didSet { settle() } }
    private var pipelines: [String: PipelineStatus] = [:]
    /// Names in the order that is shown, of those that the filter lets through.
    private(set) var rows: [String] = []

    /// How many there are, shown or not.
    var count: Int { pipelines.count }

    /// Those that are on the screen.
    var visible: [PipelineStatus] { rows.dropFirst(offset).prefix(room).compactMap { pipelines[$0] } }

    var chosenPipeline: PipelineStatus? { chosen.flatMap { pipelines[$0] } }

    // MARK: What the daemon says

    /// Takes all pipelines that there are.
    mutating func replace(with all: [PipelineStatus]) {
        pipelines = Dictionary(all.map { ($0.name, $0) }) { _, last in last }
        arrange()
    }

    /// Takes some, which may be new.
    mutating func merge(_ some: [PipelineStatus]) {
        for pipeline in some { pipelines[pipeline.name] = pipeline }
        arrange()
    }

    /// The daemon is gone, or is there and refuses.
    mutating func lose(_ trouble: String, isThere: Bool = false) {
        (self.trouble, self.isThere) = (trouble, isThere)
        silentSince = nil
    }

    /// The daemon has answered.
    mutating func answered(_ daemon: DaemonStatus, at now: Int64) {
        // Another one: what the one before it heard was its own.
        if self.daemon?.since != daemon.since || self.daemon?.pid != daemon.pid { signal = nil }
        self.daemon = daemon
        answeredAt = now
        (trouble, silentSince) = (nil, nil)
    }

    /// How long an answer may take before that is told, in microseconds: a busy daemon and a machine that swaps are slow.
    static let silence: Int64 = 3_000_000

    /// The daemon was asked and has not answered.
    mutating func waits(since asked: Int64, now: Int64) {
        silentSince = now - asked >= Self.silence ? asked : nil
    }

    /// Takes what has happened, as far as that says all; whether the daemon has to be asked for more of the pipeline.
    mutating func note(_ event: ControlEvent) -> Bool {
        switch event.kind {
        case .signal:
            signal = event
            return false
        case .runStarted, .runEnded, .state:
            guard let name = event.pipeline, pipelines[name] != nil else { return false }
            if let run = event.run { pipelines[name]?.lastRun = run }
            if let causes = event.run?.causes { pipelines[name]?.lastCauses = causes }
            if let generation = event.generation { pipelines[name]?.generation = generation }
            if event.kind == .runStarted { pipelines[name]?.state = .loading }
            if let state = event.state {
                pipelines[name]?.state = state
                pipelines[name]?.waitingFor = event.waitingFor
                pipelines[name]?.waitingUntil = event.waitingUntil
            }
            return true
        case .fact, .reloaded, .skipped, .unknown: return true
        }
    }

    /// After events were noted: the order may depend on them.
    mutating func arrangeAfterEvents() { if order != .name { arrange() } }

    /// What a row is sorted by: small, since there may be ten thousand of them.
    private struct Place: Comparable {
        var rank: Int64
        var name: String

        static func < (one: Place, other: Place) -> Bool { (one.rank, one.name) < (other.rank, other.name) }
    }

    private mutating func arrange() {
        let wanted = filter.lowercased()
        var places: [Place] = []
        for (name, pipeline) in pipelines where wanted.isEmpty || name.lowercased().contains(wanted) {
            places.append(Place(rank: Self.rank(pipeline, order), name: name))
        }
        places.sort()
        rows = places.map(\.name)
        if isReversed { rows.reverse() }
        settle()
    }

    private static func rank(_ pipeline: PipelineStatus, _ order: Order) -> Int64 {
        switch order {
        case .name: 0
        case .state: Int64(urgency(pipeline))
        // The oldest first: they are what one looks for.
        case .checked: pipeline.lastCheck ?? .min
        case .next: pipeline.nextRun?.at ?? .max
        // The largest first.
        case .size: -(pipeline.generation?.size ?? -1)
        }
    }

    /// What somebody has to look at comes first.
    private static func urgency(_ pipeline: PipelineStatus) -> Int {
        switch pipeline.state {
        case .failed: 0
        case .loading: 2
        case .waiting: 3
        case .held: 4
        case _ where pipeline.freshness == .expired: 1
        case .idle: 5
        case .unknown: 6
        case .loaded: pipeline.freshness == .fresh ? 8 : 7
        }
    }

    // MARK: Keys

    mutating func press(_ key: TopKey) -> Action {
        message = nil
        if isTyping { return type(key) }
        if page != .list {
            switch key {
            case .character("q"), .character("Q"), .escape, .enter, .character("?"), .character("h"): page = .list
            case .character("r"): return refreshChosen()
            case .redraw: return .redraw
            default: break
            }
            return .none
        }
        switch key {
        case .character("q"), .character("Q"): return .quit
        case .character("?"), .character("h"): page = .help
        case .character("s"):
            let all = Order.allCases
            let place = all.firstIndex(of: order) ?? 0
            order = all[(place + 1) % all.count]
            isReversed = false
            arrange()
        case .character("S"):
            isReversed.toggle()
            arrange()
        case .character("/"): isTyping = true
        case .character("r"): return refreshChosen()
        case .enter: if chosen != nil { page = .details }
        case .escape:
            filter = ""
            arrange()
        case .up, .character("k"): move(by: -1)
        case .down, .character("j"): move(by: 1)
        case .pageUp: move(by: -room)
        case .pageDown: move(by: room)
        case .home, .character("g"): move(by: -rows.count)
        case .end, .character("G"): move(by: rows.count)
        case .redraw: return .redraw
        case .character, .backspace: break
        }
        return .none
    }

    private func refreshChosen() -> Action { chosen.map(Action.refresh) ?? .none }

    private mutating func type(_ key: TopKey) -> Action {
        switch key {
        case .enter: isTyping = false
        case .escape:
            isTyping = false
            filter = ""
        case .backspace: if filter.isEmpty { isTyping = false } else { filter.removeLast() }
        // Longer than a name can be helps nobody.
        case .character(let character) where filter.count < 64: filter.append(character)
        case .redraw: return .redraw
        default: break
        }
        arrange()
        return .none
    }

    private mutating func move(by rows: Int) {
        guard !self.rows.isEmpty else { return }
        let place = chosen.flatMap { self.rows.firstIndex(of: $0) } ?? 0
        chosen = self.rows[max(0, min(self.rows.count - 1, place + rows))]
        settle()
    }

    /// The chosen one is there, and on the screen.
    private mutating func settle() {
        guard !rows.isEmpty else {
            (chosen, offset) = (nil, 0)
            return
        }
        let place: Int
        if let chosen, let found = rows.firstIndex(of: chosen) {
            place = found
        } else {
            place = min(offset, rows.count - 1)
            chosen = rows[place]
        }
        if place < offset { offset = place }
        if place >= offset + room { offset = place - room + 1 }
        offset = max(0, min(offset, rows.count - room))
    }
}
