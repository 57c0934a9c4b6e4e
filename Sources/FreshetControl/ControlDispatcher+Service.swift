import FreshetVarlink

/// `io.systemd.service`, by which systemd's own services can be asked and steered: the same methods with the same
/// parameters, so that what speaks to those speaks to this.
extension ControlDispatcher {
    /// Written by us; the names and types are those of systemd (`varlinkctl introspect` of its services, and
    /// `src/libsystemd/sd-varlink` and `src/shared/varlink-io.systemd.service.c` in its sources). It has one method more
    /// there, which gives the environment away; that would be no gain here.
    static let serviceDescription = """
        # What services of systemd have in common, as far as freshetd has it.
        interface io.systemd.service

        # Answers, if the service does.
        method Ping() -> ()

        # Reads the configuration again; returns when it is in force. One that has faults is refused with
        # io.freshet.Control.ConfigurationRefused.
        method Reload() -> ()

        # Logs what is of this level of syslog(3) and more urgent, until the service ends: 0 to 2 critical, 3 errors,
        # 4 warnings, 5 notices, 6 information, 7 debugging. Null is 6.
        method SetLogLevel(level: ?int) -> ()

        """

    func serviceInterface() throws(VarlinkInterface.ValidationError) -> VarlinkInterface {
        try VarlinkInterface(
            description: Self.serviceDescription,
            methods: [
                "Ping": method { _ in ControlMessage.Nothing() },
                "Reload": method { _ in
                    _ = try await service.reload(configurationOnly: false, asker: "io.systemd.service.Reload")
                    return ControlMessage.Nothing()
                },
                "SetLogLevel": method { call in
                    await service.setLogLevel(try level(of: call), asker: Self.asker(of: call))
                    return ControlMessage.Nothing()
                },
            ])
    }

    private struct Level: Decodable {
        var level: Int64?
    }

    /// Null and nothing are different: systemd takes null for its default, and refuses a call without a level.
    private func level(of call: VarlinkCall) throws -> LogLevel {
        guard call.parameters.has("level") else { throw ControlError.invalidParameter("level") }
        guard let number = try call.parameters.decode(as: Level.self).level else { return .info }
        guard let level = LogLevel(syslog: number) else { throw ControlError.invalidParameter("level") }
        return level
    }
}
