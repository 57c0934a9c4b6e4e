/// A fleet as its buckets show it: the answer of `freshetd --fleet status`.
package struct FleetOverview: Codable, Hashable, Sendable {
    package var name: String
    /// The members that have reported within the last eight days.
    package var machines: Int64
    /// Those of them that fetch for others.
    package var fetching: Int64
    /// How many members have which version of Freshet.
    package var versions: [String: Int64]
    package var pipelines: [FleetPipelineStatus]

    package init(
        name: String, machines: Int64, fetching: Int64, versions: [String: Int64], pipelines: [FleetPipelineStatus]
    ) {
        self.name = name
        self.machines = machines
        self.fetching = fetching
        self.versions = versions
        self.pipelines = pipelines
    }
}

/// The content of one pipeline in a fleet. Machines with another definition share another content.
package struct FleetPipelineStatus: Codable, Hashable, Sendable {
    /// The state of a roll-out.
    package struct RollOut: Codable, Hashable, Sendable {
        /// The part of the fleet that may take the content, in percent.
        package var percentage: Double
        /// When this step began, in microseconds since 1970.
        package var since: Int64
        package var halted: Bool

        package init(percentage: Double, since: Int64, halted: Bool) {
            self.percentage = percentage
            self.since = since
            self.halted = halted
        }
    }

    package var pipeline: String
    /// The digest of the definition.
    package var definition: String
    /// Nil: the stored record does not count; `rejection` says why.
    package var number: UInt64?
    package var digest: String?
    package var size: UInt64?
    /// When a machine last checked the origin, in microseconds since 1970.
    package var checked: Int64?
    package var fetchedBy: String?
    package var rejection: String?
    package var rollOut: RollOut?
    /// Members with this content.
    package var current: Int64 = 0
    /// Members that the roll-out has not reached yet, with the content before.
    package var waiting: Int64 = 0
    /// Members with other content.
    package var behind: Int64 = 0
    /// Members that reject the content, or whose hook fails.
    package var failed: Int64 = 0
    /// The members that are behind or failed, up to a thousand of them.
    package var members: [FleetMemberStatus] = []

    package init(pipeline: String, definition: String) {
        self.pipeline = pipeline
        self.definition = definition
    }
}

/// A member whose copy is not the newest content, or does not work.
package struct FleetMemberStatus: Codable, Hashable, Sendable {
    package enum State: String, Codable, Hashable, Sendable {
        case behind
        case rejected
        case hookFailed
    }

    package var machine: String
    package var state: State
    /// Nil: there is no copy.
    package var copy: String?
    package var error: String?
    /// When the member reported it, in microseconds since 1970.
    package var reported: Int64

    package init(machine: String, state: State, copy: String?, error: String?, reported: Int64) {
        self.machine = machine
        self.state = state
        self.copy = copy
        self.error = error
        self.reported = reported
    }
}

/// The part of a pipeline of this machine in its fleet.
package struct FleetPart: Codable, Hashable, Sendable {
    /// The machine that fetched the content of the copy, and that checked the origin last; nil: this machine has
    /// requested the content itself.
    package var machine: String?
    package var number: UInt64?
    /// In microseconds since 1970.
    package var checked: Int64?
    /// What a run in progress waits for.
    package var waits: String?
    /// The part of the fleet, in percent, that a roll-out has reached without this machine; nil: there is none.
    package var rollOut: Double?

    package init(
        machine: String? = nil, number: UInt64? = nil, checked: Int64? = nil, waits: String? = nil,
        rollOut: Double? = nil
    ) {
        self.rollOut = rollOut
        self.machine = machine
        self.number = number
        self.checked = checked
        self.waits = waits
    }
}
