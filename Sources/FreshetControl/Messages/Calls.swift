/// The parameters and replies of the methods, and the parameters of the errors, as Varlink messages have them.
package enum ControlMessage {
    package struct Daemon: Codable, Hashable, Sendable {
        package var daemon: DaemonStatus
        package init(daemon: DaemonStatus) { self.daemon = daemon }
    }

    /// Parameters of `List` and `Summarize`.
    package struct List: Codable, Hashable, Sendable {
        /// Names of pipelines, or patterns; nil: all pipelines.
        package var names: [String]?
        /// The states to select; nil: all states.
        package var states: [PipelineState]?
        /// Selects only pipelines whose names sort after this name.
        package var after: String?
        /// The most pipelines.
        package var limit: Int64?

        package init(
            names: [String]? = nil, states: [PipelineState]? = nil, after: String? = nil, limit: Int64? = nil
        ) {
            self.names = names
            self.states = states
            self.after = after
            self.limit = limit
        }
    }

    /// Parameters of `Describe`, `Metrics` and `Monitor` (nil: all pipelines) and of `FollowSignals` (nil: all
    /// signals).
    package struct Names: Codable, Hashable, Sendable {
        package var names: [String]?
    }

    package struct Pipelines: Codable, Hashable, Sendable {
        package var pipelines: [PipelineStatus]
        package init(pipelines: [PipelineStatus]) { self.pipelines = pipelines }
    }

    package struct Summaries: Codable, Hashable, Sendable {
        package var summaries: [PipelineSummary]
    }

    package struct Refresh: Codable, Hashable, Sendable {
        package var names: [String]?
        package var all: Bool?
        package var wait: Bool?
        package var force: Bool?
        package var unconditional: Bool?

        package init(
            names: [String]? = nil, all: Bool? = nil, wait: Bool? = nil, force: Bool? = nil, unconditional: Bool? = nil
        ) {
            self.unconditional = unconditional
            self.names = names
            self.all = all
            self.wait = wait
            self.force = force
        }
    }

    package struct Results: Codable, Hashable, Sendable {
        package var results: [RefreshResult]
        /// Hints of pipelines whose results will follow.
        package var waiting: [WaitingHint]?

        package init(results: [RefreshResult], waiting: [WaitingHint]? = nil) {
            self.results = results
            self.waiting = waiting
        }
    }

    package struct LoadMore: Codable, Hashable, Sendable {
        package var name: String
        package var path: [String]?
        package var wait: Bool?

        package init(name: String, path: [String]? = nil, wait: Bool? = nil) {
            self.name = name
            self.path = path
            self.wait = wait
        }
    }

    /// The reply of `LoadMore`.
    package struct LoadedMore: Codable, Hashable, Sendable {
        package var result: LoadMoreResult
        package init(result: LoadMoreResult) { self.result = result }
    }

    /// Parameters of `NothingMore` and `NoSuchBranch`.
    package struct Branch: Codable, Hashable, Sendable {
        package var name: String
        package var path: [String]
        package var suggestion: String?
    }

    /// Parameters of `SeveralBranches`.
    package struct Branches: Codable, Hashable, Sendable {
        package var name: String
        package var more: MorePages
    }

    /// Parameters of `CannotLoadMore`.
    package struct NamedReason: Codable, Hashable, Sendable {
        package var name: String
        package var reason: String
    }

    /// Parameters of the error `Failed`.
    package struct Failure: Codable, Hashable, Sendable {
        package var name: String?
        package var reason: String
    }

    package struct SetParameters: Codable, Hashable, Sendable {
        package var name: String
        package var settings: [ParameterSetting]
        package var othersToDefault: Bool?

        package init(name: String, settings: [ParameterSetting], othersToDefault: Bool? = nil) {
            self.name = name
            self.settings = settings
            self.othersToDefault = othersToDefault
        }
    }

    /// The reply of `SetParameters`.
    package struct ParametersSet: Codable, Hashable, Sendable {
        /// The parameters whose values have changed.
        package var changed: [String]
        package var parameters: [ParameterStatus]

        package init(changed: [String], parameters: [ParameterStatus]) {
            self.changed = changed
            self.parameters = parameters
        }
    }

    /// Parameters of `ParametersRefused`.
    package struct InvalidParameters: Codable, Hashable, Sendable {
        package var name: String
        package var refusals: [InvalidSetting]
    }

    /// Parameters of `Get` and `FireSignal`, and of the errors `NoGeneration` and `CannotFire`.
    package struct Name: Codable, Hashable, Sendable {
        package var name: String
    }

    package struct Generation: Codable, Hashable, Sendable {
        package var generation: GenerationStatus
        package init(generation: GenerationStatus) { self.generation = generation }
    }

    package struct Event: Codable, Hashable, Sendable {
        /// Nil in the first reply of a `Monitor` and of a `FollowSignals`.
        package var event: ControlEvent?
    }

    package struct Signals: Codable, Hashable, Sendable {
        package var signals: [SignalStatus]
        package init(signals: [SignalStatus]) { self.signals = signals }
    }

    /// The reply of `FireSignal`.
    package struct Fired: Codable, Hashable, Sendable {
        /// How many pipelines received the signal.
        package var pipelines: Int64
    }

    package struct Reload: Codable, Hashable, Sendable {
        package var configurationOnly: Bool?
        package var refresh: Bool?
    }

    package struct AwaitRuns: Codable, Hashable, Sendable {
        package var runs: [RequestedRun]
    }

    package struct Reloaded: Codable, Hashable, Sendable {
        package var summary: ReloadSummary
        package var diagnostics: [ConfigurationDiagnostic] = []
    }

    /// Parameters of `SetLogLevel` and reply of `GetLogLevel`.
    package struct Level: Codable, Hashable, Sendable {
        package var level: LogLevel
        package init(level: LogLevel) { self.level = level }
    }

    /// Parameters or reply of a method that takes or returns nothing.
    package struct Nothing: Codable, Hashable, Sendable {
        package init() {}
    }

    /// Parameters of `NoSuchPipeline` and `NoSuchSignal`.
    package struct NoSuchName: Codable, Hashable, Sendable {
        package var name: String
        package var suggestion: String?
        /// A file that is not in the active configuration; only for a pipeline.
        package var file: String?
    }

    /// Parameters of `ConfigurationRefused`.
    package struct Diagnostics: Codable, Hashable, Sendable {
        package var diagnostics: [ConfigurationDiagnostic]
        package init(diagnostics: [ConfigurationDiagnostic]) { self.diagnostics = diagnostics }
    }

    package struct Reason: Codable, Hashable, Sendable {
        package var reason: String
    }
}
