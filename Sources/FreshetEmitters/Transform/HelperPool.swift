import FreshetModel

/// Schedules the requests of pipelines on jq helpers. The scheduler does not use the helpers themselves.
///
/// It is a multilevel feedback queue. Each request begins with a short time slice. A request that has used up its slice
/// continues while a permit of a higher level, for longer slices, is free. If other requests wait for its permit, the
/// request is evicted; it starts again with a longer slice when a permit of that level is free. Each level has its own
/// permits, so endless programs block only each other and never a short program. The repeated work is a fraction of the
/// next slice. A pipeline whose requests take long begins at a higher level. Within a level, pipelines alternate.
struct HelperPool<Helper> {
    /// Identifies a request.
    typealias Ticket = UInt64

    enum Action {
        /// Start the request, with the warm helper or, without one, with a new helper. Call ``sliceEnded(_:)`` when the
        /// request has used this much processor time. Nil: the slice does not end.
        case start(Ticket, Helper?, slice: Duration?)
        /// Extend the time slice of the request to this processor time, counted from the request's start.
        case extend(Ticket, slice: Duration?)
        /// End the request's helper, then call ``evicted(_:)``.
        case evict(Ticket)
        /// Call ``cool(at:)`` at this instant.
        case cool(at: BootInstant)
    }

    private struct Waiting {
        var ticket: Ticket
        var pipeline: UInt64
        var level: Int
        /// The order within a level: the lowest tag is first.
        var tag: UInt64

        func precedes(_ other: Waiting) -> Bool {
            (other.level, tag, ticket) < (level, other.tag, other.ticket)
        }
    }

    private struct Working {
        var pipeline: UInt64
        /// The level of the request's present or, if it is overdue, next time slice.
        var level: Int
        /// The level whose permit the request has.
        var permitLevel: Int
        var isOverdue = false
        var isEvicted = false
    }

    /// The time slice of each level, in processor time. An ordinary program takes 20 ms, most of it for compiling. On
    /// the last level the helper's own limit ends a program (``FreshetJQ/JQHelper/processorLimit``).
    static var slices: [Duration?] { [.milliseconds(100), .seconds(2), nil] }
    /// The most pipelines with long requests whose level is stored. With more pipelines, all levels are reset.
    private static var memory: Int { 1_024 }

    /// How long a helper without work is kept: long enough for the pipelines of one burst, short enough that an idle
    /// daemon has no helpers.
    private let warmth: Duration
    /// The free permits of each level.
    private var free: [Int]
    private var waiting: [Waiting] = []
    private var working: [Ticket: Working] = [:]
    private var lastTag: [UInt64: UInt64] = [:]
    private var served: UInt64 = 0
    /// The level at which a pipeline's requests begin, if it is not the first level.
    private var levels: [UInt64: Int] = [:]
    /// Helpers without work. The most recently used helper is last and is used first, so that the others expire.
    private(set) var warm: [(helper: Helper, since: BootInstant)] = []

    /// - Parameter permitsPerLevel: the number of concurrent requests of each level.
    init(permitsPerLevel: Int = 1, warmth: Duration = .seconds(5)) {
        free = Self.slices.map { _ in max(1, permitsPerLevel) }
        self.warmth = warmth
    }

    // MARK: Events

    mutating func enter(_ ticket: Ticket, of pipeline: UInt64) -> [Action] {
        wait(ticket, pipeline, at: levels[pipeline] ?? 0)
        return settle()
    }

    /// A request has used up its time slice.
    mutating func sliceEnded(_ ticket: Ticket) -> [Action] {
        guard var work = working[ticket], !work.isOverdue, !work.isEvicted, work.level + 1 < Self.slices.count else {
            return []
        }
        work.level += 1
        remember(work.pipeline, at: work.level)
        work.isOverdue = work.level > work.permitLevel
        working[ticket] = work
        return (work.isOverdue ? [] : [.extend(ticket, slice: Self.slices[work.level])]) + settle()
    }

    /// The helper of an evicted request has ended: the request waits again.
    mutating func evicted(_ ticket: Ticket) -> [Action] {
        guard let work = working.removeValue(forKey: ticket) else { return [] }
        free[work.permitLevel] += 1
        wait(ticket, work.pipeline, at: work.level)
        return settle()
    }

    /// A request has ended.
    ///
    /// - Parameters:
    ///   - helper: the helper if it can serve further requests; nil if it has ended.
    ///   - used: the processor time of the request; nil if it does not predict the pipeline's further requests.
    mutating func leave(
        _ ticket: Ticket, _ helper: Helper?, used: Duration?, at now: BootInstant
    ) -> [Action] {
        guard let work = working.removeValue(forKey: ticket) else { return [] }
        free[work.permitLevel] += 1
        if let used {
            let level = Self.slices.firstIndex { $0.map { used <= $0 } ?? true } ?? 0
            remember(work.pipeline, at: level)
        }
        if let helper { warm.append((helper, now)) }
        let actions = settle()
        // One timer is enough: ``cool(at:)`` returns the next instant.
        return helper != nil && warm.count == 1 ? actions + [.cool(at: now + warmth)] : actions
    }

    /// A request is cancelled. Returns whether the request was still waiting. If it was not, it has been started, and
    /// ``leave(_:_:used:at:)`` follows.
    mutating func abandon(_ ticket: Ticket) -> Bool {
        guard let index = waiting.firstIndex(where: { $0.ticket == ticket }) else { return false }
        waiting.remove(at: index)
        return true
    }

    /// Removes the helpers that have been without work for `warmth`, which the caller has to end. Also returns when to
    /// call this again, if helpers are left.
    mutating func cool(at now: BootInstant) -> (ended: [Helper], again: BootInstant?) {
        let ended = warm.prefix { now - $0.since >= warmth }
        warm.removeFirst(ended.count)
        return (ended.map(\.helper), warm.first.map { $0.since + warmth })
    }

    // MARK: Decisions

    private mutating func wait(_ ticket: Ticket, _ pipeline: UInt64, at level: Int) {
        // After the pipeline's own last request, and not before the requests that are served now.
        let tag = max(served, lastTag[pipeline].map { $0 + 1 } ?? 0)
        lastTag[pipeline] = tag
        waiting.append(Waiting(ticket: ticket, pipeline: pipeline, level: level, tag: tag))
    }

    private mutating func remember(_ pipeline: UInt64, at level: Int) {
        if levels.count >= Self.memory { levels = [:] }
        levels[pipeline] = level == 0 ? nil : level
    }

    /// Assigns free permits, the highest level first. Then evicts overdue requests, as many as other requests wait for
    /// their permits.
    private mutating func settle() -> [Action] {
        var actions: [Action] = []
        for permitLevel in free.indices.reversed() {
            while free[permitLevel] > 0, let action = fill(permitLevel) { actions.append(action) }
        }
        if waiting.isEmpty { lastTag = [:] }
        var leaving = working.values.count { $0.isEvicted }
        let candidates = working.sorted { ($0.value.permitLevel, $0.key) < ($1.value.permitLevel, $1.key) }
        for (ticket, work) in candidates where work.isOverdue && !work.isEvicted {
            guard waiting.count(where: { $0.level <= work.permitLevel }) > leaving else { continue }
            working[ticket]?.isEvicted = true
            leaving += 1
            actions.append(.evict(ticket))
        }
        return actions
    }

    /// Gives a permit to the request of the highest level that may use it: a waiting request, or an overdue request
    /// with a permit of a lower level, which then does not start again.
    private mutating func fill(_ permitLevel: Int) -> Action? {
        var next: Int?
        for index in waiting.indices where waiting[index].level <= permitLevel {
            if let best = next, !waiting[index].precedes(waiting[best]) { continue }
            next = index
        }
        let overdue = working.filter { $1.isOverdue && !$1.isEvicted && $1.level <= permitLevel }
            .min { (-$0.value.level, $0.key) < (-$1.value.level, $1.key) }
        if let overdue, next.map({ waiting[$0].level < overdue.value.level }) ?? true {
            free[overdue.value.permitLevel] += 1
            free[permitLevel] -= 1
            working[overdue.key]?.permitLevel = permitLevel
            working[overdue.key]?.isOverdue = false
            return .extend(overdue.key, slice: Self.slices[overdue.value.level])
        }
        guard let next else { return nil }
        let request = waiting.remove(at: next)
        free[permitLevel] -= 1
        served = max(served, request.tag)
        working[request.ticket] = Working(pipeline: request.pipeline, level: request.level, permitLevel: permitLevel)
        return .start(request.ticket, warm.popLast()?.helper, slice: Self.slices[request.level])
    }
}

extension HelperPool.Action: Equatable where Helper: Equatable {}
