extension Signal {
    /// Calls a closure with each occurrence at the moment of its firing, without gaps and in the order of the numbers.
    /// Use it for bookkeeping that needs each occurrence, while ``causes`` sum them up.
    ///
    /// - Parameter received: Called on the thread that fires, under the source's lock: it must be short, and must
    ///   neither fire nor subscribe.
    /// - Returns: The subscription, which ends when this object is released.
    package func observe(_ received: @escaping @Sendable (Occurrence) -> Void) -> SignalObservation {
        SignalObservation(sources, received)
    }
}

/// A subscription of ``Signal/observe(_:)``; it ends when this object is released.
package final class SignalObservation: Sendable {
    private let registrations: [(source: Source, key: Source.Key)]

    fileprivate init(_ sources: [Source], _ received: @escaping @Sendable (Occurrence) -> Void) {
        let listener = OccurrenceListener(received: received)
        var known: Set<ObjectIdentifier> = []
        registrations = sources.filter { known.insert(ObjectIdentifier($0)).inserted }.compactMap { source in
            source.add(listener, as: 0).map { (source, $0) }
        }
    }

    deinit {
        for (source, key) in registrations { source.remove(key) }
    }
}

/// Passes occurrences on; it has no task to wake.
private final class OccurrenceListener: Listener {
    private let received: @Sendable (Occurrence) -> Void

    init(received: @escaping @Sendable (Occurrence) -> Void) { self.received = received }

    var readsOccurrences: Bool { true }

    func record(_ occurrence: Occurrence?, source: Int) -> Waiter? {
        if let occurrence { received(occurrence) }
        return nil
    }

    func sourceFinished() -> Waiter? { nil }
}
