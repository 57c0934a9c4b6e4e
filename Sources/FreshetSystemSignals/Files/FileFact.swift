/// The state of a path.
public struct FileFact: Hashable, Sendable, CustomStringConvertible {
    /// Whether a file or a directory exists at the path, after following symbolic links.
    public var exists: Bool
    /// When ``exists`` last changed; nil: not since the path is watched.
    public var since: ContinuousClock.Instant?
    /// Why not all changes can be detected, and how to repair it, as a sentence for people. Nil: all can be detected.
    public var obstacle: String?

    /// Makes a fact, for tests.
    public init(exists: Bool, since: ContinuousClock.Instant? = nil, obstacle: String? = nil) {
        self.exists = exists
        self.since = since
        self.obstacle = obstacle
    }

    /// For people: `exists` or `does not exist`.
    public var description: String { exists ? "exists" : "does not exist" }
}
