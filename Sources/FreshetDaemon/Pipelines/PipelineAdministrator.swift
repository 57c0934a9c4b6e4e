import FreshetCache
import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import Logging

/// The status of pipelines, and requests to them, for operators and other clients: runs, further pages, parameters and
/// holds.
@DaemonActor
final class PipelineAdministrator: PipelineControl {
    let context: DaemonContext
    let host: PipelineHost
    let overview: PipelineOverview
    let secrets: SecretReader

    init(
        _ context: DaemonContext, _ host: PipelineHost, _ overview: PipelineOverview, _ secrets: SecretReader
    ) {
        self.secrets = secrets
        self.context = context
        self.host = host
        self.overview = overview
    }

    // MARK: Runs

    func refresh(
        _ name: String, wait: Bool, force: Bool, unconditional: Bool = false
    ) async throws(ControlError) -> RefreshResult {
        guard let hosted = host.running(name) else {
            guard let error = host.invalid(name) else { throw .noSuchPipeline(name: name, suggestion: nil) }
            let failure = "it does not run: \(error.message)"
            return RefreshResult(name: name, outcome: .failed, failure: failure, publicFailure: failure)
        }
        // A refused request is not recorded as a signal, because no pipeline received it.
        if let refusal = hosted.runner.refusal(force: force) { return result(name, refusal) }
        let detail = "refresh" + (force ? " --force" : "") + (unconditional ? " --unconditional" : "")
        host.recorder.recordOccurrence(SignalName.operation, detail, pipeline: name)
        guard wait else {
            switch hosted.runner.requestRefresh(force: force, unconditional: unconditional) {
            case nil: return RefreshResult(name: name)
            case let refusal?: return result(name, refusal)
            }
        }
        return try result(
            name, await hosted.runner.refresh(force: force, unconditional: unconditional), of: hosted.runner)
    }

    func firstRun(of name: String, after number: Int64) async throws(ControlError) -> RefreshResult {
        let runner = try host.hosted(name).runner
        let last = runner.lastRunNumber
        // All waiting requests lead to one run, so a caller can know at most the number of the next run.
        guard UInt64(clamping: number) <= last + 1 else {
            throw .failed(
                name: name,
                reason: "run \(number) has not begun, and is not the next run: the last run of '\(name)' is \(last)")
        }
        return try result(name, await runner.firstRun(after: UInt64(clamping: number)), of: runner)
    }

    private func result(
        _ name: String, _ answer: RefreshAnswer, of runner: PipelineRunner
    ) throws(ControlError) -> RefreshResult {
        switch answer {
        case .stopped: throw .busy("'\(name)' was stopped before its run ended")
        case .refused(let refusal): return result(name, refusal)
        case .ended(let summary):
            let generation = runner.status.generation
            return RefreshResult(
                name: name, outcome: FreshetControl.RunOutcome(rawValue: summary.outcome.rawValue),
                run: Int64(clamping: summary.run), generation: generation.map { Int64(clamping: $0.number) },
                size: generation.map { Int64(clamping: $0.size) }, durationUSec: summary.duration.microseconds,
                failure: summary.failure?.message, behind: generation?.isBehind == true ? true : nil,
                publicFailure: summary.failure?.publicMessage)
        }
    }

    private func result(_ name: String, _ refusal: RefreshRefusal) -> RefreshResult {
        // A hold has no end time, and `--force` does not override it.
        guard refusal != .held else {
            let failure = Self.held(name)
            return RefreshResult(name: name, outcome: .failed, failure: failure, publicFailure: failure)
        }
        return RefreshResult(name: name, tryLater: TryLaterHint(refusal))
    }

    /// The error message for a request to a held pipeline.
    static func held(_ name: String) -> String { "it is held; 'freshetctl release \(name)' lets it run again" }

    // MARK: Further pages

    func loadMore(_ name: String, at place: [String], wait: Bool) async throws(ControlError) -> LoadMoreResult {
        let runner = try host.hosted(name).runner
        if let generation = runner.status.generation, generation.isBehind || generation.pinnedSince != nil {
            throw .cannotLoadMore(
                name: name, reason: "its copy was rolled back or is pinned, and further pages would not belong to it")
        }
        if runner.status.withdrawn != nil {
            throw .cannotLoadMore(
                name: name, reason: "its copy is withdrawn; run 'freshetctl refresh \(name)' first")
        }
        if runner.status.heldSince != nil { throw .cannotLoadMore(name: name, reason: Self.held(name)) }
        let known: [String]
        let answer: RefreshAnswer
        do throws(LoadMoreError) {
            // A refused request is not recorded as a signal, because no pipeline received it.
            try runner.furtherPages.check(place)
            host.recorder.recordOccurrence(
                SignalName.operation,
                (["load-more"] + (context.readers.isPublic(name) ? place : [])).joined(separator: " "),
                pipeline: name)
            guard wait else { return LoadMoreResult(name: name, path: try runner.furtherPages.request(at: place)) }
            (known, answer) = try await runner.furtherPages.load(at: place)
        } catch {
            throw ControlError(error, of: name, at: place)
        }
        switch answer {
        case .stopped: throw .busy("'\(name)' was stopped before the page was loaded")
        case .refused(let refusal): throw .tryLater(TryLaterHint(refusal))
        case .ended(let summary):
            let status = runner.status
            let pages = runner.furtherPages.state(at: known)
            return LoadMoreResult(
                name: name, path: known, outcome: FreshetControl.RunOutcome(rawValue: summary.outcome.rawValue),
                run: Int64(clamping: summary.run), generation: status.generation.map { Int64(clamping: $0.number) },
                size: status.generation.map { Int64(clamping: $0.size) },
                durationUSec: summary.duration.microseconds, failure: summary.failure?.message,
                pages: pages.map { Int64($0.count) }, hasMore: pages?.hasMore)
        }
    }

    // MARK: Parameters

    func setParameters(
        of name: String, to settings: [ParameterSetting], othersToDefault: Bool, caller: String
    ) async throws(ControlError) -> ControlMessage.ParametersSet {
        let hosted = try host.hosted(name)
        let changed: [String]
        do throws(ParameterErrors) {
            hide(settings, of: hosted)
            changed = try await hosted.runner.change(
                settings.map { ParameterChange($0.parameter, to: $0.value) }, othersToDefault: othersToDefault)
        } catch {
            throw .parametersRefused(name: name, refusals: error.refusals.map(InvalidSetting.init))
        }
        if !changed.isEmpty {
            context.log.log(
                .parametersSet,
                [
                    .pipeline: .string(name), .parameters: .string(changed.joined(separator: ", ")),
                    .caller: .string(caller),
                ])
        }
        return ControlMessage.ParametersSet(
            changed: changed, parameters: hosted.runner.parameters.map(ParameterStatus.init))
    }

    /// Redacts secret values before a failed run can log them.
    private func hide(_ settings: [ParameterSetting], of hosted: RunningPipeline) {
        let secrets = settings.compactMap { setting -> String? in
            guard let value = setting.value,
                let parameter = hosted.definition.parameters.first(where: { $0.name == setting.parameter }),
                parameter.isSecret, parameter.error(of: value) == nil
            else { return nil }
            return value
        }
        if !secrets.isEmpty { host.hide(parameters: secrets) }
    }

    // MARK: Holds

    func hold(_ name: String, _ isHeld: Bool, caller: String) async throws(ControlError) -> Bool {
        try await host.hold(name, isHeld, caller: caller)
    }
}

extension TryLaterHint {
    init(_ refusal: RefreshRefusal) {
        var until: Int64?
        switch refusal {
        case .retryAfter(let instant), .budget(let instant): until = WallClock.microseconds(at: instant)
        case .held, .network, .tooManyRequests: break
        }
        self.init(reason: refusal.description, until: until)
    }
}

extension ParameterStatus {
    init(_ state: ParameterState) {
        let definition = state.definition
        var choices: [String]?
        var pattern: String?
        switch definition.rule {
        case .any: break
        case .choices(let list): choices = definition.isSecret ? nil : list
        case .pattern(let text): pattern = text
        }
        self.init(
            name: definition.name, value: definition.isSecret ? nil : state.value,
            default: definition.isSecret ? nil : definition.defaultValue, isSet: state.isSet, choices: choices,
            pattern: pattern, quietUSec: definition.quiet.microseconds)
    }
}

extension InvalidSetting {
    init(_ refusal: ParameterError) {
        let reason =
            switch refusal.reason {
            case .error(let sentence): sentence
            case .unknown([]): "is unknown: the pipeline has no parameters"
            case .unknown(let known):
                "is unknown; "
                    + (NameSuggestion.closest(to: refusal.name, among: known).map { "did you mean '\($0)'?" }
                        ?? "there are \(known.joined(separator: ", "))")
            }
        self.init(parameter: refusal.name, reason: reason)
    }
}

extension ControlError {
    /// Why no further page was loaded.
    fileprivate init(_ error: LoadMoreError, of name: String, at place: [String]) {
        switch error {
        case .noPages:
            self = .cannotLoadMore(name: name, reason: "it has no 'pages'; each run loads everything")
        case .notOnDemand:
            self = .cannotLoadMore(name: name, reason: "it loads all pages by itself ('pages.load' is not a number)")
        case .notLoaded: self = .cannotLoadMore(name: name, reason: "it has no copy yet")
        case .nothingMore: self = .nothingMore(name: name, path: place)
        case .unknownPlace(let known):
            let keys = known.map { $0.joined(separator: " ") }
            self = .noSuchBranch(
                name: name, path: place,
                suggestion: NameSuggestion.closest(to: place.joined(separator: " "), among: keys))
        case .severalPlaces(let report): self = .severalBranches(name: name, more: MorePages(report))
        case .refused(let refusal): self = .tryLater(TryLaterHint(refusal))
        }
    }
}
