/// Decides which request a jq helper works on when. It knows helpers by nothing but that they are there.
///
/// A multilevel feedback queue: each request begins with a short turn. A request that has used up its turn goes on while
/// there is a free place for longer ones; if others wait for its place, it is evicted, and begins again with a longer
/// turn when there is a place for that. Each level has places of its own, so endless programs wait for each other and hold
/// up no short one; work that is done again is a fraction of the next turn. A pipeline whose requests take long begins at
/// their level. Within a level pipelines take turns.
struct HelperPool<Helper> {
    /// Names a request.
    typealias Ticket = UInt64

    enum Action {
        /// The request goes on, with a warm helper or by starting one. Call ``turnEnds(_:)`` when it has used so much
        /// processor time; nil: it has as much as it may.
        case start(Ticket, Helper?, turn: Duration?)
        /// The request has more time: the same, counted from its start.
        case extend(Ticket, turn: Duration?)
        /// End the helper, then call ``evicted(_:)``.
        case evict(Ticket)
        /// See that ``cool(at:)`` is called at this instant.
        case cool(at: ContinuousClock.Instant)
    }

    private struct Waiting {
        var ticket: Ticket
        var pipeline: UInt64
        var level: Int
        /// The lower, the earlier.
        var tag: UInt64

        func precedes(_ other: Waiting) -> Bool {
            (other.level, tag, ticket) < (level, other.tag, other.ticket)
        }
    }

    private struct Working {
        var pipeline: UInt64
        /// What the request is to have next, if it is overdue.
        var level: Int
        /// The level whose place it has.
        var place: Int
        var isOverdue = false
        var isEvicted = false
    }

    /// The turns, in processor time. An ordinary program takes 20 ms, most of them for compiling. The last level is ended
    /// by the helper's own limit (``FreshetJQ/JQHelper/processorLimit``).
    static var turns: [Duration?] { [.milliseconds(100), .seconds(2), nil] }
    /// How many pipelines whose requests take long are remembered. If there are more, they are found out again.
    private static var memory: Int { 1_024 }

    /// How long a free helper stays: long enough for the pipelines of one burst, short enough that an idle daemon has
    /// none.
    private let warmth: Duration
    /// The free places of each level.
    private var free: [Int]
    private var waiting: [Waiting] = []
    private var working: [Ticket: Working] = [:]
    private var lastTag: [UInt64: UInt64] = [:]
    private var served: UInt64 = 0
    /// The level at which a pipeline begins, if it is not the first.
    private var levels: [UInt64: Int] = [:]
    /// The one that was free last comes last and is used first, so that the others cool.
    private(set) var warm: [(helper: Helper, since: ContinuousClock.Instant)] = []

    /// - Parameter places: how many requests of each level are worked on at once.
    init(places: Int = 1, warmth: Duration = .seconds(5)) {
        free = Self.turns.map { _ in max(1, places) }
        self.warmth = warmth
    }

    // MARK: Events

    mutating func enter(_ ticket: Ticket, of pipeline: UInt64) -> [Action] {
        wait(ticket, pipeline, at: levels[pipeline] ?? 0)
        return settle()
    }

    /// A request has used up its turn.
    mutating func turnEnds(_ ticket: Ticket) -> [Action] {
        guard var work = working[ticket], !work.isOverdue, !work.isEvicted, work.level + 1 < Self.turns.count else {
            return []
        }
        work.level += 1
        remember(work.pipeline, at: work.level)
        work.isOverdue = work.level > work.place
        working[ticket] = work
        return (work.isOverdue ? [] : [.extend(ticket, turn: Self.turns[work.level])]) + settle()
    }

    /// The helper of a request that was to be evicted is gone: the request waits again.
    mutating func evicted(_ ticket: Ticket) -> [Action] {
        guard let work = working.removeValue(forKey: ticket) else { return [] }
        free[work.place] += 1
        wait(ticket, work.pipeline, at: work.level)
        return settle()
    }

    /// A request is over.
    ///
    /// - Parameters:
    ///   - helper: the helper if it can serve again, nil if it is gone.
    ///   - used: the processor time of the request; nil: it says nothing of the pipeline's requests.
    mutating func leave(
        _ ticket: Ticket, _ helper: Helper?, used: Duration?, at now: ContinuousClock.Instant
    ) -> [Action] {
        guard let work = working.removeValue(forKey: ticket) else { return [] }
        free[work.place] += 1
        if let used {
            let level = Self.turns.firstIndex { $0.map { used <= $0 } ?? true } ?? 0
            remember(work.pipeline, at: level)
        }
        if let helper { warm.append((helper, now)) }
        let actions = settle()
        // One alarm is enough: it sees to the next itself.
        return helper != nil && warm.count == 1 ? actions + [.cool(at: now + warmth)] : actions
    }

    /// A request is cancelled. Returns whether it was still waiting; if not, it has been started and will leave.
    mutating func abandon(_ ticket: Ticket) -> Bool {
        guard let index = waiting.firstIndex(where: { $0.ticket == ticket }) else { return false }
        waiting.remove(at: index)
        return true
    }

    /// The helpers that have been free for long enough: end them. And when to look again, if any are left.
    mutating func cool(at now: ContinuousClock.Instant) -> (ended: [Helper], again: ContinuousClock.Instant?) {
        let ended = warm.prefix { now - $0.since >= warmth }
        warm.removeFirst(ended.count)
        return (ended.map(\.helper), warm.first.map { $0.since + warmth })
    }

    // MARK: Decisions

    private mutating func wait(_ ticket: Ticket, _ pipeline: UInt64, at level: Int) {
        // Behind its own last one, and not before those that are served now.
        let tag = max(served, lastTag[pipeline].map { $0 + 1 } ?? 0)
        lastTag[pipeline] = tag
        waiting.append(Waiting(ticket: ticket, pipeline: pipeline, level: level, tag: tag))
    }

    private mutating func remember(_ pipeline: UInt64, at level: Int) {
        if levels.count >= Self.memory { levels = [:] }
        levels[pipeline] = level == 0 ? nil : level
    }

    /// Fills free places, those of long turns first; then evicts as many as there are requests for their places.
    private mutating func settle() -> [Action] {
        var actions: [Action] = []
        for place in free.indices.reversed() {
            while free[place] > 0, let action = fill(place) { actions.append(action) }
        }
        if waiting.isEmpty { lastTag = [:] }
        var leaving = working.values.count { $0.isEvicted }
        let candidates = working.sorted { ($0.value.place, $0.key) < ($1.value.place, $1.key) }
        for (ticket, work) in candidates where work.isOverdue && !work.isEvicted {
            guard waiting.count(where: { $0.level <= work.place }) > leaving else { continue }
            working[ticket]?.isEvicted = true
            leaving += 1
            actions.append(.evict(ticket))
        }
        return actions
    }

    /// Gives a place to the request of the highest level that it is for: one that waits, or one that is overdue in a place
    /// of shorter turns and so need not begin again.
    private mutating func fill(_ place: Int) -> Action? {
        var next: Int?
        for index in waiting.indices where waiting[index].level <= place {
            if let best = next, !waiting[index].precedes(waiting[best]) { continue }
            next = index
        }
        let overdue = working.filter { $1.isOverdue && !$1.isEvicted && $1.level <= place }
            .min { (-$0.value.level, $0.key) < (-$1.value.level, $1.key) }
        if let overdue, next.map({ waiting[$0].level < overdue.value.level }) ?? true {
            free[overdue.value.place] += 1
            free[place] -= 1
            working[overdue.key]?.place = place
            working[overdue.key]?.isOverdue = false
            return .extend(overdue.key, turn: Self.turns[overdue.value.level])
        }
        guard let next else { return nil }
        let request = waiting.remove(at: next)
        free[place] -= 1
        served = max(served, request.tag)
        working[request.ticket] = Working(pipeline: request.pipeline, level: request.level, place: place)
        return .start(request.ticket, warm.popLast()?.helper, turn: Self.turns[request.level])
    }
}

extension HelperPool.Action: Equatable where Helper: Equatable {}
