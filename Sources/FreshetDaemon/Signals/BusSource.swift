import FreshetEventLoop
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging

/// A D-Bus match that pipelines subscribe to.
@DaemonActor
final class BusSource: FollowingSource {
    nonisolated let name: String
    private let match: BusSignalMatch
    /// Held, because the connection is closed with its last source.
    private let bus: BusSignals
    private let followed: BusSignal
    private let recorder: SignalRecorder
    private let flapLog: FlapLog

    fileprivate init(
        _ match: BusSignalMatch, _ valid: BusMatch, _ bus: BusSignals, _ recorder: SignalRecorder, _ flapLog: FlapLog
    ) {
        name = Self.name(of: match)
        self.match = match
        self.bus = bus
        followed = bus.follow(valid)
        self.recorder = recorder
        self.flapLog = flapLog
    }

    nonisolated static func name(of match: BusSignalMatch) -> String { "\(SignalName.dbus) \(match)" }

    var signal: Signal? { followed.signal }
    var fact: String { followed.subscriptionState.text }
    var unavailable: String? { followed.subscriptionState.error }
    var ignored: UInt64? { followed.ignoredMessages }
    var logsAtInfo: Bool { true }
    func fire(_ detail: String) { followed.fire(detail) }

    /// Publishes the subscription state, and logs its first error.
    func follow() async {
        var wasLogged = false
        for await subscriptionState in followed.subscriptionStates {
            recorder.fact(SignalName.dbus, row: name, subscriptionState.text)
            guard !wasLogged, let reason = subscriptionState.error else { continue }
            flapLog.log(.busNotReceived, about: "\(match)", [.match: .string("\(match)"), .error: .string(reason)])
            wasLogged = true
        }
    }
}

/// The D-Bus signals that pipelines subscribe to. The session bus is connected only while a pipeline needs it.
@DaemonActor
final class BusSources {
    private let system: BusSignals
    private weak var session: BusSignals?
    private let context: DaemonContext
    private let recorder: SignalRecorder

    init(_ system: BusSignals, _ context: DaemonContext, _ recorder: SignalRecorder) {
        self.system = system
        self.context = context
        self.recorder = recorder
    }

    func references(for needs: SignalNeeds) -> [SourceReference] {
        needs.refresh.dbus.map { match in
            SourceReference(name: BusSource.name(of: match)) { [self] in
                // An invalid match is an error of the configuration.
                guard let valid = try? BusMatch(match) else { return nil }
                return BusSource(match, valid, bus(match.bus), recorder, context.flapLog)
            }
        }
    }

    private func bus(_ bus: BusSignalMatch.Bus) -> BusSignals {
        switch bus {
        case .system: return system
        case .session:
            let signals = session ?? BusSignals(BusConnection(context.loop, .session))
            session = signals
            return signals
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
