/// Tracks from UPower's messages whether this machine runs on battery.
///
/// | UPower | action |
/// | --- | --- |
/// | becomes available, or is another process | its properties are read |
/// | says that it is on battery, or not | that is the fact |
/// | says that this has changed, without the value | its properties are read again |
///
/// There is at most one request at a time, and replies carry the number of their request: a reply of a lost UPower is
/// void. Runs wait while the fact is pending, so this time is limited also if further requests follow the first one,
/// because another process has taken the name: see ``waitIsOver()``.
struct PowerMachine: Sendable {
    typealias Service = FactServiceState

    private(set) var fact = PowerFact.pending {
        didSet { if fact != .pending { firstRequest = nil } }
    }
    /// The number of the current request.
    private(set) var request: UInt64 = 0
    /// The number of the first request since the fact is pending; nil: no request is the reason.
    private(set) var firstRequest: UInt64?
    private var service = Service.pending
    private var isReading = false
    /// A change without a value came while the properties were being read: the reply may be older.
    private var isOutdated = false

    /// UPower became available or unavailable, or is another process. Returns whether its properties are to be read.
    mutating func serviceBecame(_ new: Service) -> Bool {
        guard new != service else { return false }
        service = new
        (isReading, isOutdated) = (false, false)
        switch new {
        case .pending: (fact, firstRequest) = (.pending, nil)
        case .missing(let reason): fact = .unavailable(reason: reason)
        case .received:
            fact = .pending
            return read()
        }
        return false
    }

    private mutating func read() -> Bool {
        (isReading, isOutdated) = (true, false)
        request += 1
        if fact == .pending, firstRequest == nil { firstRequest = request }
        return true
    }

    /// UPower's properties. Returns whether they are to be read again.
    mutating func answered(_ new: PowerFact, request number: UInt64) -> Bool {
        guard isReading, number == request else { return false }
        isReading = false
        if isOutdated { return read() }
        fact = new
        return false
    }

    /// UPower's properties could not be read. Its next message causes another attempt.
    mutating func failed(reason: String, request number: UInt64) {
        guard isReading, number == request else { return }
        isReading = false
        fact = .unavailable(reason: reason)
    }

    /// UPower had its time to answer since the first request: nobody waits any more. A later answer still counts.
    mutating func waitIsOver() {
        guard firstRequest != nil else { return }
        fact = .unavailable(reason: "UPower does not answer")
    }

    /// UPower's properties have changed. Returns whether they are to be read.
    mutating func changed(_ change: UPowerMessage.Change) -> Bool {
        guard case .received = service else { return false }
        // A change with a value is older than a reply that is still to come.
        if isReading {
            isOutdated = isOutdated || change == .vague
            return false
        }
        if case .unavailable = fact { return read() }
        switch change {
        case .fact(let new):
            fact = new
            return false
        case .vague: return read()
        case .other: return false
        }
    }
}

extension PowerMachine: ServiceFactMachine {
    static let service = FactService(name: UPowerMessage.name, path: UPowerMessage.path, title: "UPower")

    mutating func receive(_ event: ServiceFactEvent) -> ServiceFactOutcome {
        switch event {
        case .service(let state): return ServiceFactOutcome(reads: serviceBecame(state))
        case .changed(let arguments): return ServiceFactOutcome(reads: changed(UPowerMessage.change(arguments)))
        case .answered(let values, let request):
            return ServiceFactOutcome(reads: answered(UPowerMessage.fact(values), request: request))
        case .failed(let reason, let request):
            failed(reason: reason, request: request)
            return ServiceFactOutcome()
        }
    }
}
