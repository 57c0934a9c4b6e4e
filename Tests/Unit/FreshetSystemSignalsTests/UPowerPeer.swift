import CSystemd
import Testing

@testable import FreshetSystemSignals

/// The peer as UPower.
extension BusPeer {
    /// Sets `OnBattery` without a signal.
    func setUPower(onBattery: BusValue) { networkManager = ["OnBattery": onBattery] }

    /// Changes `OnBattery` and sends a signal with its value, like UPower.
    func changeUPower(onBattery: BusValue) throws {
        networkManager = ["OnBattery": onBattery]
        var message: OpaquePointer?
        try #require(
            sd_bus_message_new_signal(
                bus, &message, UPowerMessage.path, FactService.properties, "PropertiesChanged") >= 0)
        defer { sd_bus_message_unref(message) }
        let made = try #require(message)
        try #require(BusValue.string(UPowerMessage.name).append(to: made))
        container("a", "{sv}", in: made) { entry("OnBattery", onBattery, in: made) }
        container("a", "s", in: made) {}
        try #require(sd_bus_send(bus, made, nil) >= 0)
        try #require(sd_bus_flush(bus) >= 0)
    }
}
