import FreshetEventLoop
package import FreshetSignals

/// The signal `metered`, and whether the connection of this machine is metered, according to NetworkManager.
///
/// It fires when the connection became unmetered: the last connection of which NetworkManager knew it was metered, and
/// the present one is not. NetworkManager's own guesses count.
///
/// A missing NetworkManager is not an error, and is not started: ``MeteredFact/unavailable(reason:)`` shows it. It is
/// asked when it appears, and after each restart (``ServiceFactMonitor``).
///
/// **Order.** The fact changes, then the signal fires, both on the loop's thread.
///
/// **Threading.** All methods may be called from any thread.
package final class MeteredMonitor: FactMonitor {
    /// The name of the signal.
    package static let signalName = "metered"

    private let source: SignalSource
    private let monitor: ServiceFactMonitor<MeteredMachine>

    /// Starts to follow NetworkManager. It always succeeds: see ``MeteredFact/unavailable(reason:)``.
    ///
    /// - Parameter bus: The system bus.
    package init(bus: BusConnection) {
        let source = SignalSource(Self.signalName)
        self.source = source
        monitor = ServiceFactMonitor(bus: bus) { source.fire($0) }
    }

    /// The connection became unmetered.
    package var becameUnmetered: Signal { source.signal }

    package var fact: MeteredFact { monitor.current.value }

    package var facts: some AsyncSequence<MeteredFact, Never> & Sendable { monitor.current }

    /// The number of NetworkManager's messages that fired nothing: another property changed, or the connection became
    /// metered.
    package var minorChanges: UInt64 { monitor.machine.minor }

    /// Fires the signal without a message of NetworkManager. The fact is unchanged.
    package func fire(_ detail: String) { source.fire(detail) }
}
