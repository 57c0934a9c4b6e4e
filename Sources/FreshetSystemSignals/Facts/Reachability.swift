public import FreshetEventLoop
public import FreshetSignals

/// Whether the network can be reached, and by which way: in a line, for any program.
///
/// ```swift
/// for await fact in Reachability.changes { print(fact) }   // via 192.0.2.1 on wan0 from 192.0.2.2
/// ```
///
/// It is a description, and costs nothing. The kernel is listened to (netlink, without privileges) while somebody
/// iterates `changes` or is subscribed to `signal`, once for all who do. See <doc:Facts> for what all of these have
/// in common.
///
/// **What is missing.** Without netlink (a sandbox) there is one fact, which says so
/// (``NetworkFact/unknownBecause``): everything is taken for reachable, and nothing fires.
///
/// It does not hear that the machine woke up: until the kernel knows better, the fact is that from before its sleep.
/// ``Sleep`` tells.
public struct Reachability: Sendable {
    /// What is to be reachable.
    public let target: NetworkTarget
    private let place: SourceHost

    /// - Parameters:
    ///   - target: what is to be reachable; by default anything beyond this machine's own networks.
    ///   - loop: where the kernel is listened to; nil: on the library's own thread.
    public init(of target: NetworkTarget = .elsewhere, on loop: EventLoop? = nil) {
        self.init(of: target, in: SourceHost(loop))
    }

    init(of target: NetworkTarget, in place: SourceHost) {
        self.target = target
        self.place = place
    }

    /// The present fact first, then each change of it, losses included; a slow reader gets the newest.
    public var changes: some AsyncSequence<NetworkFact, Never> & Sendable {
        place.facts { [target] sources in
            let monitor = sources.network()
            let watch = monitor.watch(target)
            return (watch.current, [monitor, watch] as [any Sendable])
        } otherwise: { [target] reason in
            NetworkFact(target, NetworkSnapshot(), unknownBecause: reason, at: .now, epoch: 0)
        }
    }

    /// It became reachable, or is reached by another gateway, link or source address: `network`.
    public var signal: Signal {
        place.signal { [target] sources in
            let monitor = sources.network()
            let watch = monitor.watch(target)
            return (watch.signal, [monitor, watch] as [any Sendable])
        }
    }

    /// `changes` of anything beyond this machine's own networks, on the library's own thread.
    public static var changes: some AsyncSequence<NetworkFact, Never> & Sendable { Reachability().changes }

    /// `signal` of anything beyond this machine's own networks, on the library's own thread.
    public static var signal: Signal { Reachability().signal }
}
