public import FreshetEventLoop
public import FreshetSignals

/// Whether the network can be reached, and on which path.
///
/// ```swift
/// for await fact in Reachability.changes { print(fact) }   // via 192.0.2.1 on wan0 from 192.0.2.2
/// ```
///
/// It is a description, and costs nothing. The kernel's netlink messages are received (without privileges) while there
/// is an iteration of `changes` or a subscription to `signal`, once for all of them. See <doc:Facts> for the properties
/// that all sources share.
///
/// **Availability.** Without netlink (in a sandbox) there is one fact with ``NetworkFact/unknownBecause``: every target
/// is assumed to be reachable, and the signal does not fire.
///
/// It does not detect that the machine resumed: until the kernel has new information, the fact is the one from before
/// the sleep. Use ``Sleep`` for that.
public struct Reachability: Sendable {
    /// The target.
    public let target: NetworkTarget
    private let host: SourceHost

    /// - Parameters:
    ///   - target: The target; by default anything beyond this machine's own networks.
    ///   - loop: The event loop to use; nil: the library's own thread.
    public init(of target: NetworkTarget = .elsewhere, on loop: EventLoop? = nil) {
        self.init(of: target, in: SourceHost(loop))
    }

    init(of target: NetworkTarget, in host: SourceHost) {
        self.target = target
        self.host = host
    }

    /// The current fact, then each change, including losses; a slow reader gets the newest.
    public var changes: some AsyncSequence<NetworkFact, Never> & Sendable {
        host.facts { [target] sources in
            let monitor = sources.network()
            let watch = monitor.watch(target)
            return (watch.current, [monitor, watch] as [any Sendable])
        } otherwise: { [target] reason in
            NetworkFact(target, NetworkSnapshot(), unknownBecause: reason, at: .now, epoch: 0)
        }
    }

    /// The target became reachable, or is reached by another gateway, link or source address: `network`.
    public var signal: Signal {
        host.signal { [target] sources in
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
