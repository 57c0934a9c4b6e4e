import CSystemd
import Testing

@testable import FreshetSystemSignals

/// The peer as NetworkManager.
extension BusPeer {
    /// Sets the properties without a signal.
    func setNetworkManager(_ properties: [String: BusValue]) { networkManager = properties }

    /// Changes properties and sends signals with their values, like NetworkManager, this number of times.
    ///
    /// - Parameter interface: the interface that the message names.
    func changeNetworkManager(
        _ properties: [String: BusValue], of interface: String = NetworkManagerMessage.name, times: Int = 1
    ) throws {
        networkManager.merge(properties) { $1 }
        for _ in 0..<times {
            var message: OpaquePointer?
            try #require(
                sd_bus_message_new_signal(
                    bus, &message, NetworkManagerMessage.path, FactService.properties, "PropertiesChanged")
                    >= 0)
            defer { sd_bus_message_unref(message) }
            let made = try #require(message)
            try #require(BusValue.string(interface).append(to: made))
            container("a", "{sv}", in: made) {
                for (key, value) in properties { entry(key, value, in: made) }
            }
            container("a", "s", in: made) {}
            try #require(sd_bus_send(bus, made, nil) >= 0)
        }
        try #require(sd_bus_flush(bus) >= 0)
    }

    func answerNetworkManager(_ call: OpaquePointer) -> Int32 {
        networkManagerReads += 1
        return answer(call) { reply in
            container("a", "{sv}", in: reply) {
                for (key, value) in networkManager { entry(key, value, in: reply) }
            }
        }
    }
}
