/// A hook of several pipelines: it runs once after a burst of their changes. Each file `hooks/NAME.yaml` defines one.
package struct SharedHookDefinition: Hashable, Sendable {
    package var name: String
    /// One line for people.
    package var description: String?
    /// What `==` of the other properties does not see.
    package var exactTexts = ExactTexts()
    /// The names of the pipelines, without duplicates.
    package var pipelines: [String]
    /// The command or the unit, with its timeout, splay and limit.
    package var action: HookDefinition
    /// A burst ends when no pipeline has changed for this long.
    package var quiet: Duration = SharedHookDefinition.defaultQuiet
    /// The longest time from the first change of a burst to the run.
    package var atMost: Duration = SharedHookDefinition.defaultAtMost

    /// The quiet period unless configured: as for the signals of a pipeline.
    package static let defaultQuiet = RefreshPolicy.defaultQuiet
    /// The longest burst unless configured.
    package static let defaultAtMost = RefreshPolicy.defaultAtMost
    /// The longest allowed quiet period and burst. A change should not wait longer for its readers.
    package static let longestQuiet: Duration = .seconds(3_600)
    /// The most pipelines of one hook: as many as a large machine has. The state of each is kept in memory.
    package static let mostPipelines = 10_000

    package init(_ name: String, on pipelines: [String], _ action: HookDefinition) {
        self.name = name
        self.pipelines = pipelines
        self.action = action
    }

    /// Identifies the hook across restarts and reloads: its name, without the other settings. No hook of a single
    /// pipeline has the same identity, since a command begins with its path. No pipeline has this name, since a name
    /// has no spaces.
    package var identity: String { Self.identity(of: name) }

    package static func identity(of name: String) -> String { "hook \(name)" }

    /// Whether this is an identity of a hook of several pipelines, not the name of a pipeline.
    package static func isIdentity(_ text: String) -> Bool { text.hasPrefix("hook ") }
}
