/// What is done after each change of what readers see: a command, or a unit of the service manager that is reloaded.
package struct HookDefinition: Hashable, Sendable {
    /// An absolute path and arguments; there is no shell. Empty: a unit is reloaded.
    package var command: [String]
    /// The name of a unit that is reloaded; nil: a command is run.
    package var unit: String?
    /// How long one run may take.
    package var timeout: Duration

    /// Where none is configured.
    package static let defaultTimeout: Duration = .seconds(30)
    /// What may be configured: what takes longer than an hour is no hook but a service of its own.
    package static let timeouts: ClosedRange<Duration> = .seconds(1) ... .seconds(3_600)
    /// How many one pipeline may have: they run one after the other.
    package static let perPipeline = 16

    package init(_ command: [String], timeout: Duration = HookDefinition.defaultTimeout) {
        self.command = command
        self.timeout = timeout
    }

    package init(reloading unit: String, timeout: Duration = HookDefinition.defaultTimeout) {
        command = []
        self.unit = unit
        self.timeout = timeout
    }

    /// What it is known by across restarts and reloads: the command or the unit, whatever else is said of it. One line of
    /// which no two have the same: a command begins with its path.
    package var identity: String {
        if let unit { return "reload-unit \(unit)" }
        return command.map { $0.replacing("\\", with: "\\\\").replacing(" ", with: "\\ ") }.joined(separator: " ")
    }
}
