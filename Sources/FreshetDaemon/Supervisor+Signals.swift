import FreshetConfiguration
import FreshetControl
import FreshetPipelines
import FreshetSignals
import FreshetSystemSignals
import Logging

/// The sources of signals as a whole: counting what they fire, and firing one by hand.
extension Supervisor {
    /// Counts from now on what those sources fire that are there for as long as the daemon is.
    func followSources() {
        guard let parts else { return }
        followings = [
            book.follow(standard.start.signal, row: SignalName.start),
            book.follow(standard.reload.signal, row: SignalName.reload),
            book.follow(parts.elsewhere.signal, row: NetworkTargetFollower.row(of: .elsewhere)),
            book.follow(parts.sleep.resumed, row: SignalName.resume),
            book.follow(parts.sessions.foreground, row: SignalName.foreground, isNews: true),
        ]
        adopt { [book, elsewhere = parts.elsewhere] in
            for await fact in elsewhere.facts { book.fact(SignalName.network, fact.text) }
        }
    }

    /// Fires the source of a row of `freshetctl signals`: all that listens to it hears it as the real thing. What is
    /// known of the world stays as it is.
    ///
    /// - Returns: how many pipelines heard it.
    func fireSignal(_ name: String, asker: String) async throws(ControlError) -> Int {
        guard !isEnding, let parts else { throw .busy("the daemon is starting or stopping") }
        guard let source = source(of: name, in: parts) else {
            let rows = await signals().map(\.name)
            guard rows.contains(name) else {
                throw .noSuchSignal(name: name, suggestion: SignalSelection.suggestion(for: name, among: rows))
            }
            throw .cannotFire(name: name)
        }
        let heard = pipelines.values.count { source.isHeard($0) }
        log.say(
            .raised,
            [.signal: .string(name), .asker: .string(asker), .pipelines: .stringConvertible(heard)])
        source.fire("raised by hand by \(asker)")
        return heard
    }

    /// What can be fired by hand, and who listens to it.
    private struct ManualSignal {
        let fire: (_ detail: String) -> Void
        let isHeard: (RunningPipeline) -> Bool
    }

    /// Nil: there is none, or it is not to be fired by hand.
    private func source(of name: String, in parts: Parts) -> ManualSignal? {
        switch name {
        case SignalName.start: return standardSource(.start) { self.standard.start.fire($0) }
        // What is in the files is read by `freshetctl reload`; this is the signal alone.
        case SignalName.reload: return standardSource(.reload) { self.standard.reload.fire($0) }
        case SignalName.resume: return standardSource(.resume) { parts.sleep.raise($0) }
        case SignalName.foreground: return standardSource(.foreground) { parts.sessions.raise($0) }
        default: break
        }
        for target in Set(targets.keys).union([.elsewhere]) where NetworkTargetFollower.row(of: target) == name {
            return ManualSignal(fire: { parts.network.raise(target, $0) }) { hosted in
                hosted.target == target && hosted.definition.refresh.on.contains(.network)
            }
        }
        for (match, follower) in busSignals where SharedBusMatch.row(of: match) == name {
            return ManualSignal(fire: { follower.followed.raise($0) }) { hosted in
                hosted.definition.refresh.dbus.contains(match)
            }
        }
        for file in fileWatches.values.joined() where FileMonitor.signalName(of: file.watch.path) == name {
            return ManualSignal(fire: { file.watch.raise($0) }) { hosted in
                hosted.definition.refresh.files.contains(file.watch.path)
            }
        }
        for other in Set(pipelines.values.flatMap(\.definition.refresh.after))
        where CommitSignals.row(of: other) == name {
            return ManualSignal(fire: { self.commitNews.raise(other, $0) }) { hosted in
                hosted.definition.refresh.after.contains(other)
            }
        }
        return nil
    }

    private func standardSource(_ signal: StandardSignal, fire: @escaping (String) -> Void) -> ManualSignal {
        ManualSignal(fire: { fire($0) }, isHeard: { $0.definition.refresh.on.contains(signal) })
    }
}

extension NetworkFact {
    /// What `freshetctl signals` shows.
    var text: String { isReachable ? "reachable \(self)" : "not reachable: \(self)" }
}
