import FreshetControl

/// The state machine of `top`: the sorted and filtered pipelines, and the selected one. Keys, answers of the daemon and
/// events go in; actions come out.
struct TopModel: Sendable {
    /// The column by which the rows are sorted.
    enum Order: String, CaseIterable, Hashable, Sendable {
        case name, state, checked, next, size
    }

    enum Action: Hashable, Sendable {
        case none, quit
        /// Run this pipeline.
        case refresh(String)
        /// Redraw the whole screen.
        case redraw
    }

    enum Page: Hashable, Sendable {
        case list, help
        /// The details of the selected pipeline.
        case details
    }

    private(set) var order = Order.name
    private(set) var isReversed = false
    private(set) var filter = ""
    /// Whether the user types the filter.
    private(set) var isTyping = false
    private(set) var page = Page.list
    /// The name of the selected pipeline.
    private(set) var chosen: String?
    /// The index of the first visible row.
    private(set) var offset = 0
    var daemon: DaemonStatus?
    /// The last signal that fired.
    private(set) var signal: ControlEvent?
    /// The result of the last command.
    var message: String?
    /// The error message while the daemon cannot be used. The last status stays visible, marked as old.
    private(set) var failure: String?
    /// Whether the daemon answers, but refuses the request.
    private(set) var isRefusing = false
    /// The time of a request without an answer, if that is so long ago that the daemon may hang.
    private(set) var silentSince: Int64?
    /// The time of the last answer.
    private(set) var answeredAt: Int64?

    /// Whether the visible status is old.
    var isOld: Bool { failure != nil || silentSince != nil }
    /// The number of rows that fit on the screen.
    var visibleRows = 20 { didSet { updateSelection() } }
    private var pipelines: [String: PipelineStatus] = [:]
    /// The names of the pipelines that pass the filter, in order.
    private(set) var rows: [String] = []

    /// The number of all pipelines.
    var count: Int { pipelines.count }

    /// The pipelines on the screen.
    var visible: [PipelineStatus] { rows.dropFirst(offset).prefix(visibleRows).compactMap { pipelines[$0] } }

    /// The page of the selected pipeline; nil if it is not open, or not requested yet.
    private(set) var details: TopDetails?
    /// The index of the first visible line of that page.
    private(set) var detailsOffset = 0
    /// The number of lines of that page that do not fit on the screen.
    var hiddenDetailLines = 0 { didSet { detailsOffset = max(0, min(detailsOffset, hiddenDetailLines)) } }

    /// The pipeline whose page is open and has to be requested; nil: none.
    var missingDetails: PipelineStatus? {
        guard page == .details, let chosen = chosenPipeline, details?.matches(chosen) != true else { return nil }
        return chosen
    }

    /// Takes the page of a pipeline.
    mutating func take(_ details: TopDetails) { self.details = details }

    var chosenPipeline: PipelineStatus? { chosen.flatMap { pipelines[$0] } }

    // MARK: Answers of the daemon

    /// Replaces all pipelines.
    mutating func replace(with all: [PipelineStatus]) {
        pipelines = Dictionary(all.map { ($0.name, $0) }) { _, last in last }
        arrange()
    }

    /// Adds or updates pipelines.
    mutating func merge(_ some: [PipelineStatus]) {
        for pipeline in some { pipelines[pipeline.name] = pipeline }
        arrange()
    }

    /// Handles a daemon that is gone, or that refuses a request.
    mutating func disconnect(_ failure: String, isRefusing: Bool = false) {
        (self.failure, self.isRefusing) = (failure, isRefusing)
        silentSince = nil
    }

    /// Handles an answer of the daemon.
    mutating func answered(_ daemon: DaemonStatus, at now: Int64) {
        // Another daemon: the last signal belongs to the previous one.
        if self.daemon?.since != daemon.since || self.daemon?.pid != daemon.pid { signal = nil }
        self.daemon = daemon
        answeredAt = now
        (failure, silentSince) = (nil, nil)
    }

    /// The longest time for an answer, in microseconds; after that the daemon is shown as silent. A busy daemon or a
    /// machine that swaps can be slow.
    static let silenceLimit: Int64 = 3_000_000

    /// Updates ``silentSince`` while a request has no answer.
    mutating func updateSilence(since sent: Int64, now: Int64) {
        silentSince = now - sent >= Self.silenceLimit ? sent : nil
    }

    /// Applies an event. Returns whether the status of the pipeline has to be requested, because the event has only a
    /// part.
    mutating func apply(_ event: ControlEvent) -> Bool {
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

    /// Sorts again after events, if the order depends on them.
    mutating func arrangeAfterEvents() { if order != .name { arrange() } }

    /// The sort key of a row; small, because there may be ten thousand rows.
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
        updateSelection()
    }

    private static func rank(_ pipeline: PipelineStatus, _ order: Order) -> Int64 {
        switch order {
        case .name: 0
        case .state: Int64(urgency(pipeline))
        // The oldest check first.
        case .checked: pipeline.lastCheck ?? .min
        case .next: pipeline.nextRun?.at ?? .max
        // The largest first.
        case .size: -(pipeline.generation?.size ?? -1)
        }
    }

    /// Pipelines with problems come first.
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
            case .up, .character("k"): scroll(by: -1)
            case .down, .character("j"): scroll(by: 1)
            case .pageUp: scroll(by: -visibleRows)
            case .pageDown: scroll(by: visibleRows)
            case .home, .character("g"): scroll(by: -hiddenDetailLines)
            case .end, .character("G"): scroll(by: hiddenDetailLines)
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
        case .enter:
            guard chosen != nil else { break }
            page = .details
            detailsOffset = 0
            if details?.name != chosen { details = nil }
        case .escape:
            filter = ""
            arrange()
        case .up, .character("k"): move(by: -1)
        case .down, .character("j"): move(by: 1)
        case .pageUp: move(by: -visibleRows)
        case .pageDown: move(by: visibleRows)
        case .home, .character("g"): move(by: -rows.count)
        case .end, .character("G"): move(by: rows.count)
        case .redraw: return .redraw
        case .character, .backspace: break
        }
        return .none
    }

    private mutating func scroll(by lines: Int) {
        detailsOffset = max(0, min(hiddenDetailLines, detailsOffset + lines))
    }

    private func refreshChosen() -> Action { chosen.map(Action.refresh) ?? .none }

    private mutating func type(_ key: TopKey) -> Action {
        switch key {
        case .enter: isTyping = false
        case .escape:
            isTyping = false
            filter = ""
        case .backspace: if filter.isEmpty { isTyping = false } else { filter.removeLast() }
        // Not longer than a name can be.
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
        updateSelection()
    }

    /// Selects an existing row, and scrolls so that it is visible.
    private mutating func updateSelection() {
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
        if place >= offset + visibleRows { offset = place - visibleRows + 1 }
        offset = max(0, min(offset, rows.count - visibleRows))
    }
}
