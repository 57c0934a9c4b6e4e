/// Who has a place for a request and who waits for one.
///
/// The wishes of one pipeline at one origin are a *line*; a line has a *turn*, a number that grows with the time at which
/// the line began to wait or was last served. The least turn goes first, of those whose origin has room.
///
/// Between two calls it holds: if there is room in all, no line waits at an origin that has room.
struct RequestLimiterMachine<Grant> {
    typealias Limits = RequestLimiter.Limits

    private struct LineKey: Hashable {
        var pipeline: UInt64
        var origin: HTTPOrigin?
    }

    private struct Line {
        var turn: UInt64
        /// In the order of the wishes.
        var tickets: ArraySlice<UInt64>
    }

    private struct Place {
        var taken = 0
        /// The turns of the lines that wait here.
        var turns = TurnList()
        /// The turn that stands in ``open`` for this place; nil: none does.
        var open: UInt64?
    }

    private var limits: Limits
    private var lastTicket: UInt64 = 0
    private var lastTurn: UInt64 = 0
    private var taken: [UInt64: HTTPOrigin?] = [:]
    private var waiting: [UInt64: (line: LineKey, grant: Grant)] = [:]
    private var lines: [LineKey: Line] = [:]
    private var lineOfTurn: [UInt64: LineKey] = [:]
    /// Those with somebody at work or waiting; that of nil has no limit of its own.
    private var places: [HTTPOrigin?: Place] = [:]
    /// All turns.
    private var turns = TurnList()
    /// The least turn of each place that has room.
    private var open = TurnList()

    init(_ limits: Limits) {
        self.limits = Self.sound(limits)
    }

    var takenCount: Int { taken.count }
    var waitingCount: Int { waiting.count }
    /// Nothing is kept of anybody.
    var isEmpty: Bool {
        taken.isEmpty && waiting.isEmpty && lines.isEmpty && lineOfTurn.isEmpty && places.isEmpty && turns.first == nil
            && open.first == nil
    }

    mutating func request(
        for pipeline: UInt64, at origin: HTTPOrigin?, _ grant: Grant
    ) -> (ticket: UInt64, isGranted: Bool) {
        lastTicket += 1
        if taken.count < limits.total, hasRoom(origin) {
            take(lastTicket, at: origin)
            return (lastTicket, true)
        }
        let key = LineKey(pipeline: pipeline, origin: origin)
        waiting[lastTicket] = (key, grant)
        if lines[key]?.tickets.append(lastTicket) == nil { beginToWait(key, [lastTicket]) }
        update(origin)
        return (lastTicket, false)
    }

    /// Returns whom to tell that it has a place now: a place that was given back is a place for one.
    mutating func release(_ ticket: UInt64) -> Grant? {
        if let origin = taken.removeValue(forKey: ticket) {
            places[origin]?.taken -= 1
            update(origin)
            return next()
        }
        guard let (key, _) = waiting.removeValue(forKey: ticket), var line = lines[key] else { return nil }
        line.tickets.removeAll { $0 == ticket }
        if line.tickets.isEmpty { endToWait(key, line.turn) } else { lines[key] = line }
        update(key.origin)
        return nil
    }

    /// Returns those who have a place now.
    mutating func change(_ new: Limits) -> [Grant] {
        limits = Self.sound(new)
        for origin in places.keys { update(origin) }
        var granted: [Grant] = []
        while let grant = next() { granted.append(grant) }
        return granted
    }

    func queue(of ticket: UInt64) -> RequestLimiter.Queue? {
        guard let key = waiting[ticket]?.line, let line = lines[key], let place = places[key.origin] else { return nil }
        if hasRoom(key.origin) {
            return RequestLimiter.Queue(limit: limits.total, ahead: turns.count(before: line.turn))
        }
        return RequestLimiter.Queue(
            origin: key.origin, limit: limits.perOrigin, ahead: place.turns.count(before: line.turn))
    }

    /// Gives a free place to the line whose turn it is, if there is one.
    private mutating func next() -> Grant? {
        guard taken.count < limits.total, let turn = open.first, let key = lineOfTurn[turn], var line = lines[key],
            let ticket = line.tickets.popFirst(), let (_, grant) = waiting.removeValue(forKey: ticket)
        else { return nil }
        endToWait(key, turn)
        // What else it wishes for is behind all who wait now.
        if !line.tickets.isEmpty { beginToWait(key, line.tickets) }
        take(ticket, at: key.origin)
        return grant
    }

    private mutating func beginToWait(_ key: LineKey, _ tickets: ArraySlice<UInt64>) {
        lastTurn += 1
        lines[key] = Line(turn: lastTurn, tickets: tickets)
        lineOfTurn[lastTurn] = key
        turns.insert(lastTurn)
        places[key.origin, default: Place()].turns.insert(lastTurn)
    }

    private mutating func endToWait(_ key: LineKey, _ turn: UInt64) {
        lines[key] = nil
        lineOfTurn[turn] = nil
        turns.remove(turn)
        places[key.origin]?.turns.remove(turn)
    }

    private mutating func take(_ ticket: UInt64, at origin: HTTPOrigin?) {
        taken[ticket] = .some(origin)
        places[origin, default: Place()].taken += 1
        update(origin)
    }

    private func hasRoom(_ origin: HTTPOrigin?) -> Bool {
        origin == nil || (places[origin]?.taken ?? 0) < limits.perOrigin
    }

    /// A place has another room or other lines: whether it is open, and for whom.
    private mutating func update(_ origin: HTTPOrigin?) {
        guard var place = places[origin] else { return }
        let now = hasRoom(origin) ? place.turns.first : nil
        if now != place.open {
            if let before = place.open { open.remove(before) }
            if let now { open.insert(now) }
            place.open = now
        }
        places[origin] = place.taken == 0 && place.turns.first == nil ? nil : place
    }

    private static func sound(_ limits: Limits) -> Limits {
        Limits(total: max(1, limits.total), perOrigin: max(1, limits.perOrigin))
    }
}

/// Turns in their order. New ones are the greatest, and the least go first: both cost nothing; others are found by
/// halves.
private struct TurnList {
    private var turns: ArraySlice<UInt64> = []

    var first: UInt64? { turns.first }

    func count(before turn: UInt64) -> Int { index(of: turn) - turns.startIndex }

    mutating func insert(_ turn: UInt64) {
        if let last = turns.last, turn < last { turns.insert(turn, at: index(of: turn)) } else { turns.append(turn) }
    }

    mutating func remove(_ turn: UInt64) {
        let index = index(of: turn)
        guard index < turns.endIndex, turns[index] == turn else { return }
        if index == turns.startIndex { turns.removeFirst() } else { turns.remove(at: index) }
    }

    /// Where it is, or would be.
    private func index(of turn: UInt64) -> Int {
        var low = turns.startIndex
        var high = turns.endIndex
        while low < high {
            let middle = (low + high) / 2
            if turns[middle] < turn { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
