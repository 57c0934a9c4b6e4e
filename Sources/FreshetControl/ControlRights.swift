package import FreshetVarlink

/// Decides which caller may call which method, from the credentials that the kernel reports. All decisions are here.
package struct ControlRights: Hashable, Sendable {
    package enum Permission: CaseIterable, Hashable, Sendable {
        /// Reading states.
        case read
        /// Starting runs, holding and releasing, loading further pages, setting parameters, firing signals, choosing
        /// generations, examining the cache (which reads all of it), removing files that belong to no configured
        /// pipeline, and changing the log level.
        case change
        /// Reloading the configuration, and waiting for the runs that a reload has requested.
        case reload
    }

    /// The permission that each method needs, by its name with the interface. The methods of `org.varlink.service` are
    /// not here: they describe the daemon's interfaces, and everybody may call them.
    package static let permissions: [String: Permission] = [
        "io.freshet.Control.GetDaemon": .read,
        "io.freshet.Control.List": .read,
        "io.freshet.Control.Summarize": .read,
        "io.freshet.Control.Describe": .read,
        "io.freshet.Control.Metrics": .read,
        "io.freshet.Control.RecentEvents": .read,
        "io.freshet.Control.Get": .read,
        "io.freshet.Control.History": .read,
        "io.freshet.Control.ReadGeneration": .read,
        "io.freshet.Control.ReadCandidate": .read,
        "io.freshet.Control.Accept": .change,
        "io.freshet.Control.Rollback": .change,
        "io.freshet.Control.Pin": .change,
        "io.freshet.Control.Unpin": .change,
        "io.freshet.Control.Hold": .change,
        "io.freshet.Control.Release": .change,
        "io.freshet.Control.Examine": .change,
        "io.freshet.Control.ListUnowned": .change,
        "io.freshet.Control.Prune": .change,
        "io.freshet.Control.Monitor": .read,
        "io.freshet.Control.Signals": .read,
        "io.freshet.Control.FollowSignals": .read,
        "io.freshet.Control.FireSignal": .change,
        "io.freshet.Control.GetLogLevel": .read,
        "io.freshet.Control.Refresh": .change,
        "io.freshet.Control.LoadMore": .change,
        "io.freshet.Control.SetLogLevel": .change,
        "io.freshet.Control.SetParameters": .change,
        "io.freshet.Control.Reload": .reload,
        "io.freshet.Control.AwaitRuns": .reload,
        "io.systemd.service.Ping": .read,
        "io.systemd.service.Reload": .reload,
        "io.systemd.service.SetLogLevel": .change,
    ]

    /// The user that the daemon runs as.
    package var daemonUser: UInt32
    /// Whether the daemon's user is a system user, as which nobody logs in: then this user may only read and reload, as
    /// `ExecReload=` needs it. An ordinary user may do everything with their own daemon.
    package var isSystemDaemon: Bool
    /// The group whose members may change things, named `freshet`; nil: this machine has no such group.
    package var changingGroup: UInt32?

    /// The user who may always do everything: root.
    package var superuser: UInt32

    package init(daemonUser: UInt32, isSystemDaemon: Bool, changingGroup: UInt32?, superuser: UInt32 = 0) {
        self.superuser = superuser
        self.daemonUser = daemonUser
        self.isSystemDaemon = isSystemDaemon
        self.changingGroup = changingGroup
    }

    /// Whether a peer may call a method; false for a method that is not in ``permissions``.
    package func allow(_ method: String, by peer: VarlinkPeer) -> Bool {
        Self.permissions[method].map { allow($0, by: peer) } ?? false
    }

    package func allow(_ permission: Permission, by peer: VarlinkPeer) -> Bool {
        switch permission {
        case .read: true
        case .change: mayChange(peer)
        case .reload: mayChange(peer) || peer.user == daemonUser
        }
    }

    /// Whether some of the server's connections are reserved for a peer: for all peers that may do more than read, such
    /// as the daemon's own user for `ExecReload=`.
    package func hasReservedConnections(_ peer: VarlinkPeer) -> Bool { allow(.reload, by: peer) }

    private func mayChange(_ peer: VarlinkPeer) -> Bool {
        if peer.user == superuser { return true }
        // The system daemon runs with this group. Its hooks must not gain the operator's rights from that.
        if peer.user == daemonUser { return !isSystemDaemon }
        return changingGroup.map(peer.isMember(of:)) ?? false
    }
}
