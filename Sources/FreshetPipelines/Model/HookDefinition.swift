/// A command that is run after each change of what readers see.
package struct HookDefinition: Hashable, Sendable {
    /// An absolute path and arguments; there is no shell.
    package var command: [String]
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

    /// What it is known by across restarts and reloads: the command, whatever else is said of it. One line of which no
    /// two commands have the same.
    package var identity: String {
        command.map { $0.replacing("\\", with: "\\\\").replacing(" ", with: "\\ ") }.joined(separator: " ")
    }
}
