import FreshetControl
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging

/// One match of D-Bus, followed for all pipelines that listen to it.
struct SharedBusMatch: Sendable {
    let followed: BusSignal
    let following: SignalRegistry.Following
    /// Set to end the tasks that follow.
    let ending = CurrentValue(false)

    /// The row of `freshetctl signals`.
    static func row(of match: BusSignalMatch) -> String { "\(SignalName.dbus) \(match)" }
}

/// Signals of D-Bus that pipelines listen to.
extension Supervisor {
    /// The signal of a match, which is followed until ``releaseBusSignals()`` finds that nobody needs it. Nil if the bus
    /// would not take it, which the configuration was refused for.
    func busSignal(_ match: BusSignalMatch) -> Signal? {
        if let known = busSignals[match] { return known.followed.signal }
        guard let bus = bus(match.bus), let valid = try? BusMatch(match) else { return nil }
        let (followed, row) = (bus.follow(valid), SharedBusMatch.row(of: match))
        let follower = SharedBusMatch(
            followed: followed, following: book.follow(followed.signal, row: row, isNews: true))
        busSignals[match] = follower
        adopt { [weak self, ending = follower.ending] in
            await withDiscardingTaskGroup { group in
                group.addTask { await self?.followStanding(of: match) }
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

    /// Tells those who follow how a match stands, and the journal, once, that it is not heard.
    private func followStanding(of match: BusSignalMatch) async {
        guard let standings = busSignals[match]?.followed.standings else { return }
        var wasSaid = false
        for await standing in standings {
            book.fact(SignalName.dbus, row: SharedBusMatch.row(of: match), standing.text)
            guard !wasSaid, let reason = standing.fault else { continue }
            log.say(.busUnheard, [.match: .string("\(match)"), .error: .string(reason)])
            wasSaid = true
        }
    }

    /// Ends what no pipeline listens to any more; the session's bus too, if that was the last.
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
            let standing = follower.followed.standing
            return book.status(
                SharedBusMatch.row(of: match), fact: standing.text, unavailable: standing.fault,
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

    /// What configuration asks of each match.
    @Sendable static func fault(of match: BusSignalMatch) -> String? {
        do throws(InvalidMatch) {
            _ = try BusMatch(match)
            return nil
        } catch {
            return error.description
        }
    }
}

extension BusSubscriptionState {
    /// What `freshetctl signals` shows.
    var text: String {
        switch self {
        case .connecting: "not heard yet"
        case .inForce(sender: let sender?): "heard from \(sender)"
        case .inForce(sender: nil): "heard"
        case .refused, .disconnected: "not heard"
        }
    }

    /// Why nothing is heard; nil: nothing is wrong.
    var fault: String? {
        switch self {
        case .connecting, .inForce: nil
        case .refused(let reason), .disconnected(let reason): reason
        }
    }
}
