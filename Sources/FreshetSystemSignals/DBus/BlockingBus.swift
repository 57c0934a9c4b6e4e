import CSystemd
import Glibc

/// A connection to the system bus for a process without an event loop: each call blocks. A service that does not run
/// is started.
///
/// It is not `Sendable`: sd-bus's objects belong to one thread.
package final class BlockingBus {
    private let bus: OpaquePointer

    /// Begins to connect. An address that starts a program is refused.
    ///
    /// - Parameter address: The address of the bus; nil: the one of the system bus from the environment.
    package init(address: String? = nil) throws(BusError) {
        let address = address ?? BusAddress.of(.system) { name in getenv(name).map { String(cString: $0) } }
        // sd-bus would start it with the rights of this process, which are those of root.
        if let address, address.contains("unixexec:") { throw .startsProgram }
        var made: OpaquePointer?
        guard sd_bus_new(&made) >= 0, let made else { throw .disconnected }
        bus = made
        // If this throws, the deinitializer runs.
        guard sd_bus_set_address(made, address) >= 0, sd_bus_set_bus_client(made, 1) >= 0, sd_bus_start(made) >= 0
        else { throw .disconnected }
    }

    deinit { sd_bus_flush_close_unref(bus) }

    /// Calls a method of an object.
    ///
    /// - Parameters:
    ///   - member: The method.
    ///   - interface: The interface of the method.
    ///   - path: The object.
    ///   - destination: The bus name of the object's service.
    ///   - arguments: Values; an array has at least one element.
    ///   - timeout: How long to wait for the reply.
    package func call(
        _ member: String, of interface: String, at path: String, on destination: String, _ arguments: [BusValue] = [],
        timeout: Duration = .seconds(5)
    ) throws(BusError) -> [BusValue] {
        var made: OpaquePointer?
        guard sd_bus_message_new_method_call(bus, &made, destination, path, interface, member) >= 0, let made else {
            throw .invalid
        }
        defer { sd_bus_message_unref(made) }
        guard arguments.allSatisfy({ $0.append(to: made) }) else { throw .invalid }
        var error = sd_bus_error()
        defer { sd_bus_error_free(&error) }
        var reply: OpaquePointer?
        let microseconds = UInt64(max(.microseconds(1), timeout) / .microseconds(1))
        guard sd_bus_call(bus, made, microseconds, &error, &reply) >= 0, let reply else {
            guard let name = error.name else { throw .disconnected }
            throw BusError(String(cString: name), error.message.map { String(cString: $0) } ?? "")
        }
        defer { sd_bus_message_unref(reply) }
        return try BusLink.read(reply).get()
    }
}
