/// Tracks from NetworkManager's messages whether the connection is metered, and decides when it became unmetered.
///
/// | NetworkManager | action |
/// | --- | --- |
/// | becomes available, or is another process | its properties are read |
/// | has made a connection | its properties are read again, unless it has said meanwhile whether it is metered |
/// | says that the connection is not metered | fires if the last known connection was metered, whatever was between |
/// | is lost, or says anything else | fires nothing |
///
/// There is at most one request at a time, and replies carry the number of their request: a reply of a lost
/// NetworkManager is void. Runs wait while the fact is pending, so this time is limited also if further requests follow
/// the first one, because another process has taken the name: see ``waitIsOver()``.
struct MeteredMachine: Sendable {
    typealias Outcome = ServiceFactOutcome
    typealias Service = FactServiceState

    private(set) var fact = MeteredFact.pending {
        didSet { if fact != .pending { firstRequest = nil } }
    }
    /// The number of the current request.
    private(set) var request: UInt64 = 0
    /// The number of the first request since the fact is pending; nil: no request is the reason.
    private(set) var firstRequest: UInt64?
    /// The number of NetworkManager's messages that fired nothing. Replies do not count.
    private(set) var minor: UInt64 = 0

    private var service = Service.pending
    private var isReading = false
    /// Whether the properties were read, so that a change completes them.
    private var isKnown = false
    private var metered = MeteredFact.unknown
    private var isConnecting = false
    /// Whether the last known connection was metered.
    private var wasMetered = false

    /// NetworkManager became available or unavailable, or is another process.
    mutating func serviceBecame(_ new: Service) -> Outcome {
        guard new != service else { return Outcome() }
        service = new
        (isReading, isKnown) = (false, false)
        switch new {
        case .pending: (fact, firstRequest) = (.pending, nil)
        case .missing(let reason): fact = .unavailable(reason: reason)
        case .received:
            fact = .pending
            return read()
        }
        return Outcome()
    }

    private mutating func read() -> Outcome {
        isReading = true
        request += 1
        if fact == .pending, firstRequest == nil { firstRequest = request }
        return Outcome(reads: true)
    }

    /// NetworkManager's properties.
    mutating func answered(_ properties: NetworkManagerMessage.Properties, request number: UInt64) -> Outcome {
        guard isReading, number == request else { return Outcome() }
        (isReading, isKnown) = (false, true)
        metered = properties.metered ?? .unknown
        isConnecting = properties.isConnecting ?? false
        return advance()
    }

    /// NetworkManager's properties could not be read. Its next message causes another attempt.
    mutating func failed(reason: String, request number: UInt64) {
        guard isReading, number == request else { return }
        (isReading, isKnown) = (false, false)
        fact = .unavailable(reason: reason)
    }

    /// NetworkManager had its time to answer since the first request: nobody waits any more. A later answer still counts.
    mutating func waitIsOver() {
        guard firstRequest != nil else { return }
        fact = .unavailable(reason: "NetworkManager does not answer")
    }

    /// NetworkManager's properties have changed.
    mutating func changed(_ change: NetworkManagerMessage.Properties) -> Outcome {
        var outcome = Outcome()
        // A reply that is still to come was made after this message.
        if case .received = service, !isReading {
            metered = change.metered ?? metered
            isConnecting = change.isConnecting ?? isConnecting
            // NetworkManager reports the end of connecting just before `Metered`, in another message.
            let isConnected = fact == .connecting && metered == .unknown && !isConnecting
            if change.isVague || !isKnown || isConnected {
                outcome = read()
            } else if change.metered != nil || change.isConnecting != nil {
                outcome = advance()
            }
        }
        if outcome.firing == nil { minor += 1 }
        return outcome
    }

    private mutating func advance() -> Outcome {
        fact = metered == .unknown && isConnecting ? .connecting : metered
        guard let isMetered = fact.isMetered else { return Outcome() }
        defer { wasMetered = isMetered }
        return Outcome(firing: wasMetered && !isMetered ? fact.description : nil)
    }
}

extension MeteredMachine: ServiceFactMachine {
    static let service = FactService(
        name: NetworkManagerMessage.name, path: NetworkManagerMessage.path, title: "NetworkManager")

    mutating func receive(_ event: ServiceFactEvent) -> Outcome {
        switch event {
        case .service(let state): return serviceBecame(state)
        case .changed(let arguments): return changed(NetworkManagerMessage.change(arguments))
        case .answered(let values, let request):
            return answered(NetworkManagerMessage.properties(values), request: request)
        case .failed(let reason, let request):
            failed(reason: reason, request: request)
            return Outcome()
        }
    }
}
