import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSystemd

// The engine's values as the control interface shows them: instants of boot time become wall-clock microseconds.

extension FreshetControl.PipelineStatus {
    init(
        _ status: FreshetPipelines.PipelineStatus, of definition: PipelineDefinition, path: String?,
        parameters: [ParameterState] = []
    ) {
        let wait = status.waitsFor
        var progress: LoadProgress?
        if case .loading(let loaded) = status.activity { progress = loaded }
        let branches = progress.flatMap { $0.branches > 0 ? $0 : nil }
        let failure = status.failing.map { failing in
            FailureStatus(
                message: failing.failure.message, since: WallClock.microseconds(at: failing.since),
                attempts: Int64(failing.attempts), publicMessage: failing.failure.publicMessage,
                certificate: failing.failure.certificate.map(CertificateStatus.init))
        }
        self.init(
            name: status.name, description: definition.description, source: definition.source.text,
            state: PipelineState(status.activity), waitingFor: wait.map { WaitingReason($0.reason) },
            waitingUntil: wait?.until.map(WallClock.microseconds(at:)), waitingDetail: wait?.detail,
            loadedBytes: progress.map { Int64(clamping: $0.bytes) },
            totalBytes: progress.flatMap(\.totalBytes).map { Int64(clamping: $0) },
            loadedPages: progress.flatMap { $0.pages > 0 ? Int64($0.pages) : nil },
            endedBranches: branches.map { Int64($0.endedBranches) }, knownBranches: branches.map { Int64($0.branches) },
            freshness: status.freshness.map(FreshetControl.Freshness.init),
            generation: status.generation.map(GenerationStatus.init), lastCheck: status.lastCheck?.microseconds,
            originExpires: status.originExpires.map(WallClock.microseconds(at:)),
            expires: status.expires.map(WallClock.microseconds(at:)),
            contentExpires: status.contentExpires?.microseconds,
            lastRun: status.run.map(RunStatus.init) ?? status.lastRun.map(RunStatus.init),
            lastCauses: status.lastCauses.map(CauseStatus.init),
            ignoredSignals: status.ignored > 0 ? Int64(status.ignored) : nil, nextRun: status.next.map(NextRun.init),
            failure: failure, candidate: status.rejected.map(CandidateStatus.init),
            budget: status.budget.map(BudgetStatus.init),
            branches: status.branches.map(BranchesStatus.init), more: status.more.map(MorePages.init),
            needsNetwork: definition.needsNetwork,
            path: path, parameters: parameters.isEmpty ? nil : parameters.map(ParameterStatus.init),
            withdrawn: status.withdrawn.flatMap(WithdrawnCopy.init), heldSince: status.heldSince?.microseconds,
            mirror: Redaction.mirror(status.mirror))
        copyError = status.copyError
    }
}

extension CertificateStatus {
    init(_ certificate: ServerCertificate) {
        self.init(
            depth: Int64(certificate.depth), subject: certificate.subject, issuer: certificate.issuer,
            notBefore: certificate.notBefore?.microseconds, notAfter: certificate.notAfter?.microseconds,
            names: certificate.names)
    }
}

extension PipelineSummary {
    /// - Parameter mayRead: whether the client may read the published file, and so the whole error message.
    init(_ status: FreshetPipelines.PipelineStatus, hookFails: Bool, mayRead: Bool) {
        self.init(
            name: status.name, state: PipelineState(status.activity),
            waitingFor: status.waitsFor.map { WaitingReason($0.reason) },
            freshness: status.freshness.map(FreshetControl.Freshness.init),
            generation: status.generation.map(GenerationStatus.init),
            withdrawn: status.withdrawn.flatMap(WithdrawnCopy.init), lastCheck: status.lastCheck?.microseconds,
            nextRun: status.next.map { NextRun($0).at }, causes: status.lastCauses.map(\.signal), hookFails: hookFails,
            failure: status.failing.map { mayRead ? $0.failure.message : $0.failure.publicMessage })
    }
}

extension PipelineState {
    init(_ activity: PipelineActivity) {
        self =
            switch activity {
            case .idle: .idle
            case .waiting: .waiting
            case .loading: .loading
            case .loaded: .loaded
            case .failed: .failed
            case .held: .held
            }
    }
}

extension WaitingReason {
    init(_ reason: Wait.Reason) {
        self =
            switch reason {
            case .network: .network
            case .metered: .metered
            case .power: .power
            case .quiet, .interval, .splay: .quiet
            case .backoff, .retryAfter: .backoff
            case .budget: .budget
            case .permit: .permit
            case .memory: .memory
            case .sleep: .sleep
            case .fileSystem: .filesystem
            }
    }
}

extension FreshetControl.Freshness {
    init(_ freshness: FreshetPipelines.Freshness) {
        self =
            switch freshness {
            case .fresh: .fresh
            case .stale: .stale
            case .expired: .expired
            }
    }
}

extension GenerationStatus {
    init(_ generation: CurrentGeneration) {
        self.init(
            number: Int64(clamping: generation.number), size: Int64(clamping: generation.size),
            digest: generation.digest.description, committedAt: generation.committedAt.microseconds,
            path: generation.path,
            truncated: generation.truncated ? true : nil, behind: generation.isBehind ? true : nil,
            pinnedSince: generation.pinnedSince?.microseconds)
        directory = generation.directory
        comment = generation.comment
    }
}

extension CauseStatus {
    init(_ cause: RunCause) {
        // Computed from the first, since a second reading of the clocks would give another difference.
        let first = WallClock.microseconds(at: cause.first)
        self.init(
            signal: cause.signal, number: cause.number.map { Int64(clamping: $0) }, count: Int64(cause.count),
            first: first, last: first + max(0, cause.first.duration(to: cause.last).microseconds),
            detail: cause.detail)
    }
}

extension RunStatus {
    init(_ order: RunOrder) {
        self.init(
            number: Int64(clamping: order.run), started: WallClock.microseconds(at: order.started),
            causes: order.causes.map(CauseStatus.init))
    }

    init(_ summary: RunSummary) {
        self.init(
            number: Int64(clamping: summary.run), started: WallClock.microseconds(at: summary.started),
            causes: summary.causes.map(CauseStatus.init), durationUSec: summary.duration.microseconds,
            outcome: FreshetControl.RunOutcome(rawValue: summary.outcome.rawValue),
            generation: summary.generation.map(Int64.init(clamping:)), failure: summary.failure?.message,
            publicFailure: summary.failure?.publicMessage)
        failureKind = summary.failure?.kind.rawValue
        httpStatus = summary.failure?.status.map(Int64.init)
        retryAfterUSec = summary.failure?.retryAfter?.microseconds
        mirror = Redaction.mirror(summary.mirror)
    }

    /// - Parameter usage: what the run used; nil: not known.
    init(_ summary: RunSummary, _ usage: RunUsage?) {
        self.init(summary)
        requests = usage.map { Int64($0.requests) }
        bytes = usage.map { Int64(clamping: $0.bytes) }
    }
}

extension CandidateStatus {
    init(_ rejected: RejectedCandidate) {
        self.init(
            digest: rejected.digest.description, size: Int64(clamping: rejected.size),
            rejectedAt: rejected.rejectedAt.microseconds, reason: rejected.reason)
    }
}

extension BranchesStatus {
    init(_ report: BranchReport) {
        self.init(
            total: Int64(report.total), failed: Int64(report.failed),
            failing: report.failing.map { branch in
                BranchFailureStatus(
                    path: branch.path, message: branch.failure.message, since: WallClock.microseconds(at: branch.since),
                    attempts: Int64(branch.attempts))
            })
    }
}

extension MorePages {
    init(_ report: PagesReport) {
        self.init(
            total: Int64(report.total),
            places: report.places.map { MorePages.Place(path: $0.path, pages: Int64($0.count)) })
    }
}

extension BudgetStatus {
    init(_ use: BudgetUse) {
        self.init(
            limit: Int64(use.budget.limit), periodUSec: use.budget.period.duration.microseconds, used: Int64(use.used))
    }
}

extension NextRun {
    init(_ planned: PlannedRun) {
        let reason =
            switch planned.reason {
            case .timer: "timer"
            case .retry: "retry"
            case .signals: "signals"
            }
        self.init(at: WallClock.microseconds(at: planned.at), reason: reason)
    }
}

extension SourceDefinition {
    /// The source as people see it: without user information, query and headers.
    var text: String {
        switch self {
        case .http(let source):
            Redaction.url(source.url)
                + (source.mirrors.map { $0.list.count == 2 ? " and 1 mirror" : " and \($0.list.count - 1) mirrors" }
                    ?? "")
        case .command(let arguments): Redaction.text(arguments.joined(separator: " "))
        case .file(let path): path
        case .copy(let pipeline, _): "pipeline \(pipeline)"
        case .joined(let sources): sources.map { "\($0.name): \($0.stage.source.text)" }.joined(separator: ", ")
        }
    }
}

extension Redaction {
    /// A mirror's URL without secrets. It may be from a damaged index. Nil: it is empty, or there are no mirrors.
    static func mirror(_ url: String?) -> String? { url.flatMap { $0.isEmpty ? nil : Self.url($0) } }
}
