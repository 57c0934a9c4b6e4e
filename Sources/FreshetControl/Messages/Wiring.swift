/// The configured inputs, signals, files and times of a pipeline.
package struct PipelineDescription: Codable, Hashable, Sendable {
    package var name: String
    package var description: String?
    /// Where the data comes from, without user information and query.
    package var source: String
    /// The pipelines whose copies this pipeline reads.
    package var inputs: [String]
    /// The sources of signals to which the pipeline subscribes, by their names in `Signals`.
    package var signals: [String]
    /// The paths of the published files.
    package var files: [String]
    /// The hooks that run after a change, in words.
    package var hooks: [String]
    /// The time between a successful check and the next planned check; nil: no planned checks.
    package var everyUSec: Int64?
    /// The calendar times of planned checks, as they are configured; nil: there are none.
    package var at: [String]?
    package var quietUSec: Int64?
    package var atMostUSec: Int64?
    package var freshForUSec: Int64?
    package var minIntervalUSec: Int64?
    package var deadlineUSec: Int64?
    package var maxAgeUSec: Int64?
    /// `queue` or `restart`.
    package var whenRunning: String?
    package var needsNetwork: Bool
    /// True if its configuration has errors: then all other members are empty or unknown.
    package var invalid: Bool?
    /// The secrets that its requests carry; nil: none.
    package var credentials: [CredentialFile]?

    package init(
        name: String, description: String? = nil, source: String, inputs: [String] = [], signals: [String] = [],
        files: [String] = [], hooks: [String] = [], everyUSec: Int64? = nil, at: [String]? = nil,
        quietUSec: Int64? = nil,
        atMostUSec: Int64? = nil, freshForUSec: Int64? = nil, minIntervalUSec: Int64? = nil,
        deadlineUSec: Int64? = nil, maxAgeUSec: Int64? = nil, whenRunning: String? = nil, needsNetwork: Bool = false,
        invalid: Bool? = nil, credentials: [CredentialFile]? = nil
    ) {
        self.credentials = credentials
        self.name = name
        self.description = description
        self.source = source
        self.inputs = inputs
        self.signals = signals
        self.files = files
        self.hooks = hooks
        self.everyUSec = everyUSec
        self.at = at
        self.quietUSec = quietUSec
        self.atMostUSec = atMostUSec
        self.freshForUSec = freshForUSec
        self.minIntervalUSec = minIntervalUSec
        self.deadlineUSec = deadlineUSec
        self.maxAgeUSec = maxAgeUSec
        self.whenRunning = whenRunning
        self.needsNetwork = needsNetwork
        self.invalid = invalid
    }
}

/// Counters of a pipeline since the daemon started.
package struct PipelineCounters: Codable, Hashable, Sendable {
    package var name: String
    /// Runs, by outcome.
    package var changed: Int64
    package var unchanged: Int64
    package var failed: Int64
    package var superseded: Int64
    package var cancelled: Int64
    /// The duration of all runs together.
    package var durationUSec: Int64
    /// The number of requests of all runs.
    package var requests: Int64
    /// The bytes of all response bodies.
    package var receivedBytes: Int64

    package init(
        name: String, changed: Int64 = 0, unchanged: Int64 = 0, failed: Int64 = 0, superseded: Int64 = 0,
        cancelled: Int64 = 0, durationUSec: Int64 = 0, requests: Int64 = 0, receivedBytes: Int64 = 0
    ) {
        self.name = name
        self.changed = changed
        self.unchanged = unchanged
        self.failed = failed
        self.superseded = superseded
        self.cancelled = cancelled
        self.durationUSec = durationUSec
        self.requests = requests
        self.receivedBytes = receivedBytes
    }

    /// All runs, with any outcome.
    package var runs: Int64 { changed + unchanged + failed + superseded + cancelled }
}

extension ControlMessage {
    package struct Descriptions: Codable, Hashable, Sendable {
        package var pipelines: [PipelineDescription]
        package init(pipelines: [PipelineDescription]) { self.pipelines = pipelines }
    }

    package struct Metrics: Codable, Hashable, Sendable {
        package var pipelines: [PipelineCounters]
    }

    /// Parameters of `RecentEvents`.
    package struct Recent: Codable, Hashable, Sendable {
        package var names: [String]?
        package var since: Int64?
    }

    package struct RecentEvents: Codable, Hashable, Sendable {
        package var events: [ControlEvent]
        /// After this instant no event is missing.
        package var completeSince: Int64

        package init(events: [ControlEvent], completeSince: Int64) {
            self.events = events
            self.completeSince = completeSince
        }
    }

    /// The reply of `Hold` and `Release`.
    package struct Held: Codable, Hashable, Sendable {
        /// The pipeline; nil: the daemon is older than this member.
        package var name: String?
        /// Whether the call changed anything.
        package var changed: Bool
    }
}
