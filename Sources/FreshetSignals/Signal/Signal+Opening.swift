extension Signal {
    /// What a subscription opened: the signal that it listens to, and what has to live for that to fire.
    package struct Opened: Sendable {
        let signal: Signal
        let lease: any Sendable

        /// - Parameters:
        ///   - signal: What is listened to. Subscriptions that get the same one share its sources.
        ///   - lease: Kept until the subscription has ended, and released after it.
        package init(_ signal: Signal, keeping lease: any Sendable) {
            self.signal = signal
            self.lease = lease
        }
    }

    /// A signal of something that costs while it is listened to: each subscription opens it, and closes it again.
    ///
    /// What is open already can be handed out once more; that is up to `open`.
    ///
    /// - Parameter open: Called on the subscriber's thread when an iterator is made. It must not fail: what cannot be
    ///   opened is a signal that is silent.
    package init(opening open: @escaping @Sendable () -> Opened) {
        self.init(sources: [], openings: [open])
    }

    /// All sources, those included that are opened for this; what is opened lives as long as the leases.
    func open() -> (sources: [Source], leases: [any Sendable]) {
        guard !openings.isEmpty else { return (sources, []) }
        var opened = (sources: sources, leases: [any Sendable]())
        for opening in openings {
            let one = opening()
            let inner = one.signal.open()
            opened.sources += inner.sources
            opened.leases += inner.leases
            opened.leases.append(one.lease)
        }
        return opened
    }
}
