/// A service of the bus whose properties hold a fact.
struct FactService: Sendable {
    /// The well-known bus name, which is also the interface of the properties.
    let name: String
    let path: String
    /// The name for people.
    let title: String
}

/// Whether a service is available, and its unique bus name.
enum FactServiceState: Hashable, Sendable {
    case pending
    case received(sender: String)
    case missing(reason: String)

    init(_ subscriptionState: BusSubscriptionState, of service: FactService) {
        switch subscriptionState {
        case .connecting: self = .pending
        case .active(sender: let sender?): self = .received(sender: sender)
        case .active(sender: nil): self = .missing(reason: "\(service.title) does not run")
        case .refused(let reason), .disconnected(let reason): self = .missing(reason: reason)
        }
    }
}

/// What ``ServiceFactMonitor`` receives from the bus.
enum ServiceFactEvent: Sendable {
    /// The service became available or unavailable, or is another process.
    case service(FactServiceState)
    /// The arguments of `PropertiesChanged`, `sa{sv}as`; nil: they are too large.
    case changed([BusValue]?)
    /// The reply of `GetAll`, `a{sv}`.
    case answered([BusValue], request: UInt64)
    case failed(reason: String, request: UInt64)
}

/// The actions to perform, in this order.
struct ServiceFactOutcome: Hashable, Sendable {
    /// Fire, with this detail.
    var firing: String?
    /// Read the service's properties.
    var reads = false
}

/// Decides what the messages of a service mean.
protocol ServiceFactMachine: Sendable {
    associatedtype Fact: Hashable, Sendable

    static var service: FactService { get }
    init()
    var fact: Fact { get }
    /// The number of the current request.
    var request: UInt64 { get }
    /// The number of the first request since the fact is pending; nil: no request is the reason.
    var firstRequest: UInt64? { get }
    /// The service had its time to answer since the first request: nobody waits any more. A later answer still counts.
    mutating func waitIsOver()
    mutating func receive(_ event: ServiceFactEvent) -> ServiceFactOutcome
}
