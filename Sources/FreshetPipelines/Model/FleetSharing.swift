/// How a pipeline shares its content with the other machines of a fleet.
package struct FleetSharing: Hashable, Sendable {
    /// How long the other machines wait for a check after the last fetcher should have made it.
    package var grace: Duration

    /// How new content goes to the fleet, if this machine fetches it; nil: to all machines together.
    package var rollOut: FleetSteps?

    package static let defaultGrace: Duration = .seconds(30)

    package init(grace: Duration = FleetSharing.defaultGrace, rollOut: FleetSteps? = nil) {
        self.grace = grace
        self.rollOut = rollOut
    }
}

/// The steps of a roll-out.
package struct FleetSteps: Hashable, Sendable {
    /// The parts of the fleet, growing, in percent; the last one is 100.
    package var percentages: [Double]
    /// How long each step lasts.
    package var each: Duration
    /// When so many machines report a failure in one step, the roll-out is halted.
    package var failures: UInt32

    package static let standard = FleetSteps(percentages: [1, 10, 100], each: .seconds(1_800), failures: 3)

    package init(percentages: [Double], each: Duration, failures: UInt32) {
        self.percentages = percentages
        self.each = each
        self.failures = failures
    }
}
