import FreshetVarlink

/// The interface `io.systemd.service`, which systemd's own services have: the same methods with the same parameters, so
/// that a client of those services can use it.
extension ControlDispatcher {
    /// Freshet's own text with the names and types of systemd (`varlinkctl introspect` of its services, and
    /// `src/libsystemd/sd-varlink` and `src/shared/varlink-io.systemd.service.c` in its sources). It omits systemd's
    /// method that discloses the environment.
    static let serviceDescription = """
        # Methods that all services of systemd have, as far as freshetd has them.
        interface io.systemd.service

        # Answers if the service responds at all.
        method Ping() -> ()

        # Reloads the configuration; returns when the new configuration is active. If the configuration has errors, the
        # reload is refused with io.freshet.Control.ConfigurationRefused.
        method Reload() -> ()

        # Sets the least urgent level of syslog(3) that is logged, until the service ends: 0 to 2 critical, 3 errors,
        # 4 warnings, 5 notices, 6 information, 7 debugging. Null is 6.
        method SetLogLevel(level: ?int) -> ()

        """

    func serviceInterface() throws(VarlinkInterface.ValidationError) -> VarlinkInterface {
        try VarlinkInterface(
            description: Self.serviceDescription,
            methods: [
                "Reload": method { _ in
                    _ = try await services.daemon.reload(.changed, caller: "io.systemd.service.Reload")
                    return ControlMessage.Nothing()
                },
                "SetLogLevel": method { call in
                    await services.daemon.setLogLevel(try level(of: call), caller: call.caller)
                    return ControlMessage.Nothing()
                },
            ],
            immediateMethods: [
                "Ping": { call in
                    guard rights.allow(call.method, by: call.peer) else { throw ControlError.permissionDenied.reply }
                    return .none
                }
            ])
    }

    private struct Level: Decodable {
        var level: Int64?
    }

    /// The level of a call. As in systemd, null stands for the default, and a call without a level is refused.
    private func level(of call: VarlinkCall) throws -> LogLevel {
        guard call.parameters.has("level") else { throw ControlError.invalidParameter("level") }
        guard let number = try call.parameters.decode(as: Level.self).level else { return .info }
        guard let level = LogLevel(syslog: number) else { throw ControlError.invalidParameter("level") }
        return level
    }
}
