package import FreshetVarlink

/// Who may do what, by the kernel's word on who called: the one place where that is decided.
package struct ControlRights: Hashable, Sendable {
    package enum Permission: CaseIterable, Hashable, Sendable {
        /// Looking at states.
        case read
        /// Starting runs, holding and releasing, loading further pages, setting parameters, firing signals, choosing
        /// generations, examining the cache (which reads all of it), removing what no pipeline owns, and changing what the
        /// daemon logs.
        case change
        /// Reading the configuration again.
        case reload
    }

    /// What each method is a case of, by its name with the interface. Those of `org.varlink.service` are not here: they
    /// say what the daemon's interfaces are, and are everybody's.
    package static let deeds: [String: Permission] = [
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
        "io.systemd.service.Ping": .read,
        "io.systemd.service.Reload": .reload,
        "io.systemd.service.SetLogLevel": .change,
    ]

    /// The user that the daemon runs as.
    package var daemonUser: UInt32
    /// Whether that is a system user, to which nobody logs in: then it owns nothing here and may only reload, which is
    /// what `ExecReload=` needs. The daemon of an ordinary user is that user's own.
    package var isSystemDaemon: Bool
    /// The group whose members may change things, `freshet` by name; nil: there is none on this machine.
    package var changingGroup: UInt32?

    /// Who may always do everything: root.
    package var superuser: UInt32

    package init(daemonUser: UInt32, isSystemDaemon: Bool, changingGroup: UInt32?, superuser: UInt32 = 0) {
        self.superuser = superuser
        self.daemonUser = daemonUser
        self.isSystemDaemon = isSystemDaemon
        self.changingGroup = changingGroup
    }

    /// Whether a peer may call a method; false for one that is not in ``deeds``.
    package func allow(_ method: String, by peer: VarlinkPeer) -> Bool {
        Self.deeds[method].map { allow($0, by: peer) } ?? false
    }

    package func allow(_ deed: Permission, by peer: VarlinkPeer) -> Bool {
        switch deed {
        case .read: true
        case .change: mayChange(peer)
        case .reload: mayChange(peer) || peer.user == daemonUser
        }
    }

    private func mayChange(_ peer: VarlinkPeer) -> Bool {
        if peer.user == superuser { return true }
        // The system daemon has the group as its own: a hook that it runs must not gain the operator's rights by it.
        if peer.user == daemonUser { return !isSystemDaemon }
        return changingGroup.map(peer.isMember(of:)) ?? false
    }
}
