package import FreshetPipelines

/// The membership of this machine in a fleet: the section `fleet` of `freshet.yaml`.
package struct FleetDefinition: Hashable, Sendable {
    package enum Role: String, CaseIterable, Hashable, Sendable {
        /// It takes content from the fleet only.
        case follow
        /// It also requests content from origins for all members.
        case fetch
    }

    /// The behaviour of this machine while the engine does not answer.
    package struct Fallback: Hashable, Sendable {
        /// How long the engine must be silent.
        package var after: Duration
        /// The mean number of requests per second of all members, for each pipeline.
        package var rate: Double

        package static let standard = Fallback(after: .seconds(900), rate: 5)
    }

    package var name: String
    /// What `==` of the other properties does not see.
    package var exactTexts = ExactTexts()
    /// The URLs of the engine's servers, at least one.
    package var servers: [String]
    /// The path of a file of PEM certificates that alone are trusted for the servers; nil: the system's authorities.
    package var certificateAuthority: String?
    /// The name of the credential with the NKEY seed of this member; nil: the servers need none.
    package var credential: String?
    /// The name of this machine in the fleet, unique in it; nil: its host name and a part of its machine id.
    package var machine: String?
    package var role = Role.follow
    /// The public NKEYs of the members whose records count.
    package var publishers: [String]
    /// The domain of JetStream that has the buckets; nil: that of the servers.
    package var domain: String?
    /// The domain of JetStream at this site that has a mirror of the buckets; nil: there is none.
    package var mirror: String?
    /// The time over which the members spread the transfer of new content.
    package var spread: Duration = .seconds(5)
    /// Nil: without the engine, no origin is requested.
    package var fallback: Fallback? = .standard
}
