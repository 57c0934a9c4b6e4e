import FreshetConfiguration
import FreshetControl
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging

/// Counts the occurrences of signal sources, and fires sources by hand.
extension Supervisor {
    /// Starts to count the occurrences of the sources that exist for as long as the daemon runs.
    func followSources() {
        guard let parts else { return }
        followings = [
            registry.follow(standard.start.signal, row: SignalName.start),
            registry.follow(standard.reload.signal, row: SignalName.reload),
            registry.follow(parts.elsewhere.signal, row: NetworkTargetFollower.row(of: .elsewhere)),
            registry.follow(parts.sleep.resumed, row: SignalName.resume),
            registry.follow(parts.sessions.foreground, row: SignalName.foreground, logsAtInfo: true),
        ]
        adopt { [registry, elsewhere = parts.elsewhere] in
            for await fact in elsewhere.facts { registry.fact(SignalName.network, fact.text) }
        }
    }

    /// Fires the source of a row of `freshetctl signals`. Its subscribers receive the signal like a real one, but the
    /// fact of the source does not change.
    ///
    /// - Returns: the number of pipelines that received the signal.
    func fireSignal(_ name: String, caller: String) async throws(ControlError) -> Int {
        guard !isEnding, let parts else { throw .busy("the daemon is starting or stopping") }
        guard let source = source(of: name, in: parts) else {
            let rows = await signals().map(\.name)
            guard rows.contains(name) else {
                throw .noSuchSignal(name: name, suggestion: SignalSelection.suggestion(for: name, among: rows))
            }
            throw .cannotFire(name: name)
        }
        let received = pipelines.values.count { source.isReceived($0) }
        log.log(
            .firedByRequest,
            [.signal: .string(name), .caller: .string(caller), .pipelines: .stringConvertible(received)])
        source.fire("fired by hand by \(caller)")
        return received
    }

    /// A signal that can be fired by hand, and the rule that decides which pipelines receive it.
    private struct ManualSignal {
        let fire: (_ detail: String) -> Void
        let isReceived: (RunningPipeline) -> Bool
    }

    /// The source of a row; nil: it does not exist, or it cannot be fired by hand.
    private func source(of name: String, in parts: Parts) -> ManualSignal? {
        switch name {
        case SignalName.start: return standardSource(.start) { self.standard.start.fire($0) }
        // Only the signal is fired; `freshetctl reload` reads the files too.
        case SignalName.reload: return standardSource(.reload) { self.standard.reload.fire($0) }
        case SignalName.resume: return standardSource(.resume) { parts.sleep.fire($0) }
        case SignalName.foreground: return standardSource(.foreground) { parts.sessions.fire($0) }
        default: break
        }
        for target in Set(targets.keys).union([.elsewhere]) where NetworkTargetFollower.row(of: target) == name {
            return ManualSignal(fire: { parts.network.fire(target, $0) }) { hosted in
                hosted.target == target && hosted.definition.refresh.on.contains(.network)
            }
        }
        for (match, follower) in busSignals where SharedBusMatch.row(of: match) == name {
            return ManualSignal(fire: { follower.followed.fire($0) }) { hosted in
                hosted.definition.refresh.dbus.contains(match)
            }
        }
        for file in fileWatches.values.joined() where FileMonitor.signalName(of: file.watch.path) == name {
            return ManualSignal(fire: { file.watch.fire($0) }) { hosted in
                hosted.definition.refresh.files.contains(file.watch.path)
            }
        }
        for other in Set(pipelines.values.flatMap(\.definition.refresh.after))
        where CommitSignals.row(of: other) == name {
            return ManualSignal(fire: { self.commitSignals.fire(other, $0) }) { hosted in
                hosted.definition.refresh.after.contains(other)
            }
        }
        return nil
    }

    private func standardSource(_ signal: StandardSignal, fire: @escaping (String) -> Void) -> ManualSignal {
        ManualSignal(fire: { fire($0) }, isReceived: { $0.definition.refresh.on.contains(signal) })
    }
}

extension NetworkFact {
    /// The fact in `freshetctl signals`.
    var text: String { isReachable ? "reachable \(self)" : "not reachable: \(self)" }
}
