extension Signal {
    /// Hears each occurrence at the moment of its firing, none left out and in the order of their numbers: for
    /// bookkeeping that must not miss what ``causes`` sum up.
    ///
    /// - Parameter heard: called by whoever fires, on its thread and under the source's lock: it must be short, and must
    ///   neither fire nor subscribe.
    /// - Returns: the subscription, which ends when this goes away.
    package func observe(_ heard: @escaping @Sendable (Occurrence) -> Void) -> SignalObservation {
        SignalObservation(sources, heard)
    }
}

/// A subscription of ``Signal/observe(_:)``; it ends when this goes away.
package final class SignalObservation: Sendable {
    private let registrations: [(source: Source, key: Source.Key)]

    fileprivate init(_ sources: [Source], _ heard: @escaping @Sendable (Occurrence) -> Void) {
        let listener = OccurrenceListener(heard: heard)
        var known: Set<ObjectIdentifier> = []
        registrations = sources.filter { known.insert(ObjectIdentifier($0)).inserted }.compactMap { source in
            source.add(listener, as: 0).map { (source, $0) }
        }
    }

    deinit {
        for (source, key) in registrations { source.remove(key) }
    }
}

/// Hands occurrences on; there is nobody to be woken.
private final class OccurrenceListener: Listener {
    private let heard: @Sendable (Occurrence) -> Void

    init(heard: @escaping @Sendable (Occurrence) -> Void) { self.heard = heard }

    var readsOccurrences: Bool { true }

    func record(_ occurrence: Occurrence?, source: Int) -> Waiter? {
        if let occurrence { heard(occurrence) }
        return nil
    }

    func sourceFinished() -> Waiter? { nil }
}
