extension Signal {
    /// The result of opening a signal: the signal to subscribe to, and an object that has to live as long as it fires.
    package struct Opened: Sendable {
        let signal: Signal
        let lease: any Sendable

        /// - Parameters:
        ///   - signal: The signal to subscribe to. Subscriptions that get the same signal share its sources.
        ///   - lease: Kept until the subscription has ended, and released after it.
        package init(_ signal: Signal, keeping lease: any Sendable) {
            self.signal = signal
            self.lease = lease
        }
    }

    /// A signal with a source that is open only while there are subscribers: each subscription opens and closes it.
    ///
    /// The closure `open` may return a signal that is already open.
    ///
    /// - Parameter open: Called on the subscriber's thread when an iterator is made. It must not fail: if the source
    ///   cannot be opened, return a signal that never fires.
    package init(opening open: @escaping @Sendable () -> Opened) {
        self.init(sources: [], openings: [open])
    }

    /// All sources, including the ones opened by this call. Opened sources live as long as the leases.
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
