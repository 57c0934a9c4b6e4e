import FreshetEventLoop
import FreshetSignals

/// Whether this machine runs on battery, according to UPower.
///
/// A missing UPower is not an error, and is not started: ``PowerFact/unavailable(reason:)`` shows it. UPower is asked
/// when it appears, and after each restart (``ServiceFactMonitor``). (logind has this property too, but sends no signal
/// when it changes.)
///
/// **Threading.** All methods may be called from any thread.
package final class PowerMonitor: FactMonitor {
    private let monitor: ServiceFactMonitor<PowerMachine>

    /// Starts to follow UPower. It always succeeds: see ``PowerFact/unavailable(reason:)``.
    ///
    /// - Parameter bus: The system bus.
    package convenience init(bus: BusConnection) { self.init(bus: bus, timeout: FactService.timeout) }

    init(bus: BusConnection, timeout: Duration) { monitor = ServiceFactMonitor(bus: bus, timeout: timeout) }

    package var fact: PowerFact { monitor.current.value }

    package var facts: some AsyncSequence<PowerFact, Never> & Sendable { monitor.current }
}
