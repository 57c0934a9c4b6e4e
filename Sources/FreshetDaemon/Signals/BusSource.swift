import FreshetControl
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging

/// A D-Bus match that is followed for all pipelines that subscribe to it.
struct SharedBusMatch: Sendable {
    let followed: BusSignal
    let following: SignalRegistry.Following
    /// Set to true to end the tasks that follow the match.
    let ending = CurrentValue(false)

    /// The name of the row in `freshetctl signals`.
    static func row(of match: BusSignalMatch) -> String { "\(SignalName.dbus) \(match)" }
}

/// The D-Bus signals that pipelines subscribe to.
extension Supervisor {
    /// The signal of a match. It is followed until ``releaseBusSignals()`` finds that no pipeline needs it. Nil for an
    /// invalid match, which is an error of the configuration.
    func busSignal(_ match: BusSignalMatch) -> Signal? {
        if let known = busSignals[match] { return known.followed.signal }
        guard let bus = bus(match.bus), let valid = try? BusMatch(match) else { return nil }
        let (followed, row) = (bus.follow(valid), SharedBusMatch.row(of: match))
        let follower = SharedBusMatch(
            followed: followed, following: registry.follow(followed.signal, row: row, logsAtInfo: true))
        busSignals[match] = follower
        adopt { [weak self, ending = follower.ending] in
            await withDiscardingTaskGroup { group in
                group.addTask { await self?.followState(of: match) }
                for await isEnding in ending where isEnding { break }
                group.cancelAll()
            }
        }
        return followed.signal
    }

    private func bus(_ bus: BusSignalMatch.Bus) -> BusSignals? {
        switch bus {
        case .system: return parts?.systemBus
        case .session:
            let signals = sessionBus ?? BusSignals(BusConnection(loop, .session))
            sessionBus = signals
            return signals
        }
    }

    /// Publishes the subscription state of a match, and logs its first error.
    private func followState(of match: BusSignalMatch) async {
        guard let subscriptionStates = busSignals[match]?.followed.subscriptionStates else { return }
        var wasLogged = false
        for await subscriptionState in subscriptionStates {
            registry.fact(SignalName.dbus, row: SharedBusMatch.row(of: match), subscriptionState.text)
            guard !wasLogged, let reason = subscriptionState.error else { continue }
            flapLog.log(.busNotReceived, about: "\(match)", [.match: .string("\(match)"), .error: .string(reason)])
            wasLogged = true
        }
    }

    /// Ends the matches that no pipeline subscribes to any more, and closes the session bus if no match uses it.
    func releaseBusSignals() {
        let needed = Set(pipelines.values.flatMap(\.definition.refresh.dbus))
        for (match, follower) in busSignals where !needed.contains(match) {
            follower.ending.value = true
            busSignals[match] = nil
        }
        if !busSignals.keys.contains(where: { $0.bus == .session }) { sessionBus = nil }
    }

    /// The rows of `freshetctl signals`.
    func busStatus() -> [SignalStatus] {
        busSignals.map { match, follower in
            let subscriptionState = follower.followed.subscriptionState
            return registry.status(
                SharedBusMatch.row(of: match), fact: subscriptionState.text, unavailable: subscriptionState.error,
                ignored: follower.followed.ignoredMessages)
        }
    }
}

extension BusMatch {
    init(_ match: BusSignalMatch) throws(InvalidMatch) {
        try self.init(
            sender: match.sender, path: match.path, pathNamespace: match.pathNamespace, interface: match.interface,
            member: match.member, firstArgument: match.firstArgument)
    }

    /// The error of a match in the configuration; nil: the match is valid.
    @Sendable static func error(of match: BusSignalMatch) -> String? {
        do throws(InvalidMatch) {
            _ = try BusMatch(match)
            return nil
        } catch {
            return error.description
        }
    }
}

extension BusSubscriptionState {
    /// The state in `freshetctl signals`.
    var text: String {
        switch self {
        case .connecting: "connecting"
        case .active(sender: let sender?): "receiving from \(sender)"
        case .active(sender: nil): "receiving"
        case .refused, .disconnected: "not receiving"
        }
    }

    /// Why no signal is received; nil: there is no error.
    var error: String? {
        switch self {
        case .connecting, .active: nil
        case .refused(let reason), .disconnected(let reason): reason
        }
    }
}
