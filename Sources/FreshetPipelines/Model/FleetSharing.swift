/// How a pipeline shares its content with the other machines of a fleet.
package struct FleetSharing: Hashable, Sendable {
    /// How long the other machines wait for a check after the last fetcher should have made it.
    package var grace: Duration

    package static let defaultGrace: Duration = .seconds(30)

    package init(grace: Duration = FleetSharing.defaultGrace) { self.grace = grace }
}
