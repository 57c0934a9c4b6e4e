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
    /// What the last command came to, or what is wrong.
    var message: String?
    /// How many rows fit.
    var room = 20 { didSet { settle() } }
    private var pipelines: [String: PipelineStatus] = [:]
    /// In the order that is shown, those that the filter lets through.
    private(set) var rows: [PipelineStatus] = []

    /// How many there are, shown or not.
    var count: Int { pipelines.count }

    /// Those that are on the screen.
    var visible: ArraySlice<PipelineStatus> { rows.dropFirst(offset).prefix(room) }

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

    /// What a daemon has that is gone is not shown any longer.
    mutating func forget() {
        daemon = nil
        pipelines = [:]
        signal = nil
        arrange()
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

    /// After events were noted.
    mutating func arrange() {
        let wanted = filter.lowercased()
        let all = pipelines.values.filter { wanted.isEmpty || $0.name.lowercased().contains(wanted) }
        rows = all.sorted { one, other in
            let isBefore = Self.isBefore(one, other, order)
            return isReversed ? !isBefore && one.name != other.name : isBefore
        }
        settle()
    }

    private static func isBefore(_ one: PipelineStatus, _ other: PipelineStatus, _ order: Order) -> Bool {
        switch order {
        case .name: one.name < other.name
        case .state: (urgency(one), one.name) < (urgency(other), other.name)
        // The oldest first: they are what one looks for.
        case .checked: (one.lastCheck ?? .min, one.name) < (other.lastCheck ?? .min, other.name)
        case .next: (one.nextRun?.at ?? .max, one.name) < (other.nextRun?.at ?? .max, other.name)
        case .size:
            (-(one.generation?.size ?? -1), one.name) < (-(other.generation?.size ?? -1), other.name)
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
            case .character("q") where page == .help, .escape, .enter, .character("?"), .character("h"): page = .list
            case .character("q"): page = .list
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
        let place = self.rows.firstIndex { $0.name == chosen } ?? 0
        chosen = self.rows[max(0, min(self.rows.count - 1, place + rows))].name
        settle()
    }

    /// The chosen one is there, and on the screen.
    private mutating func settle() {
        guard !rows.isEmpty else {
            (chosen, offset) = (nil, 0)
            return
        }
        let place: Int
        if let chosen, let found = rows.firstIndex(where: { $0.name == chosen }) {
            place = found
        } else {
            place = min(offset, rows.count - 1)
            chosen = rows[place].name
        }
        if place < offset { offset = place }
        if place >= offset + room { offset = place - room + 1 }
        offset = max(0, min(offset, rows.count - room))
    }
}
