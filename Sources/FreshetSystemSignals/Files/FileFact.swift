/// What is at a path, as far as is known: a fact that can be asked for at any time.
public struct FileFact: Hashable, Sendable, CustomStringConvertible {
    /// Whether something is there: a file, a directory, or whatever a symbolic link leads to.
    public var exists: Bool
    /// When ``exists`` became what it is; nil: it has been so since the path is watched.
    public var since: ContinuousClock.Instant?
    /// Why not all changes are noticed, and what helps: a sentence for people. Nil: they are.
    public var obstacle: String?

    /// Makes a fact by hand: for tests of what reads facts.
    public init(exists: Bool, since: ContinuousClock.Instant? = nil, obstacle: String? = nil) {
        self.exists = exists
        self.since = since
        self.obstacle = obstacle
    }

    /// For people: `exists` or `does not exist`.
    public var description: String { exists ? "exists" : "does not exist" }
}
