import FreshetControl
import FreshetEventLoop
import FreshetFleet
import FreshetModel
import FreshetNATS
import FreshetSystemd

/// What an operator sees of a fleet, and wants from it.
struct FleetReview: Sendable {
    /// The most members that are listed for one pipeline.
    private static let mostMembers = 1_000

    let survey: FleetSurvey
    let store: FleetStore
    let client: NATSClient
    let loop: EventLoop
    let name: String

    /// The state of the fleet.
    ///
    /// - Parameter pipelines: if empty, all.
    func overview(of pipelines: [String]) async throws(FleetStoreError) -> FleetOverview {
        let machines = try await survey.machines()
        var overview = FleetOverview(
            name: name, machines: Int64(machines.count), fetching: Int64(machines.count(where: \.fetches)),
            versions: machines.reduce(into: [:]) { $0[$1.version, default: 0] += 1 }, pipelines: [])
        var contents: [FleetSurvey.Content] = []
        for pipeline in pipelines { contents += try await survey.contents(of: pipeline) }
        if pipelines.isEmpty { contents = try await survey.contents(of: nil) }
        for content in contents {
            overview.pipelines.append(Self.status(content, try await survey.copies(of: content)))
        }
        overview.pipelines.sort { ($0.pipeline, $0.definition) < ($1.pipeline, $1.definition) }
        return overview
    }

    static func status(_ content: FleetSurvey.Content, _ copies: [FleetSurvey.Copy]) -> FleetPipelineStatus {
        var status = FleetPipelineStatus(pipeline: content.pipeline, definition: content.fingerprint.description)
        let record: FleetRecord
        switch content.record {
        case .failure(let rejection):
            status.rejection = rejection.description
            return status
        case .success(let verified): record = verified
        }
        (status.number, status.size, status.fetchedBy) = (record.number, record.size, record.madeBy)
        (status.digest, status.checked) = (record.digest.description, record.checkedAt.microseconds)
        status.rollOut = record.rollOut.map {
            FleetPipelineStatus.RollOut(
                percentage: Double($0.share) / 10_000, since: $0.since.microseconds, halted: $0.isHalted)
        }
        for copy in copies {
            let state: FleetMemberStatus.State
            if let failure = copy.report.failure, failure.digest == record.digest {
                status.failed += 1
                state = failure.kind == .rejected ? .rejected : .hookFailed
            } else if copy.report.copy == record.digest {
                status.current += 1
                continue
            } else if let rollOut = record.rollOut, copy.report.copy == rollOut.before {
                status.waiting += 1
                continue
            } else {
                status.behind += 1
                state = .behind
            }
            guard status.members.count < mostMembers else { continue }
            status.members.append(
                FleetMemberStatus(
                    machine: copy.machine, state: state, copy: copy.report.copy?.description,
                    error: state == .behind ? nil : copy.report.failure?.text, reported: copy.reported.microseconds))
        }
        status.members.sort { ($0.state.rawValue, $0.machine) < ($1.state.rawValue, $1.machine) }
        return status
    }

    /// Stores what an operator wants, and waits until a machine that fetches has done it.
    ///
    /// - Returns: the result as a sentence, or why it was not done.
    func request(
        _ kind: FleetOrder.Kind?, _ pipeline: String, within limit: Duration
    ) async throws(FleetStoreError) -> Result<String, FleetRequestError> {
        var found: [(content: FleetSurvey.Content, record: FleetRecord)] = []
        for content in try await survey.contents(of: pipeline) {
            if case .success(let record) = content.record { found.append((content, record)) }
        }
        // Of several definitions, the one that was checked last is in use.
        guard let (content, before) = found.max(by: { $0.record.checkedAt < $1.record.checkedAt }) else {
            return .failure(.unknown)
        }
        if let kind {
            guard let rollOut = before.rollOut else { return .failure(.noRollOut) }
            guard rollOut.isHalted != (kind == .halt) else {
                return .success(kind == .halt ? "its roll-out is halted already" : "its roll-out is not halted")
            }
        }
        // From before the demand, so that no answer is missed.
        let notices = try await self.notices(of: content)
        let timer = LoopTimer(loop, named: "fleet") { notices.cancel() }
        timer.arm(at: .now + limit)
        defer { timer.disarm() }
        let want = kind.map { FleetWant.rollOut($0, before.digest) } ?? .refresh
        let sequence = try await store.put(.want, want.key(pipeline), want.text)
        while let delivery = try? await notices.next() {
            guard case .message(let notice) = delivery, let record = survey.record(notice, of: content) else {
                continue
            }
            if kind == nil, record.answeredDemand == sequence {
                let result = record.digest == before.digest ? "it did not change" : "there is new content"
                return .success("\(record.madeBy) has checked it: \(result) (number \(record.number))")
            }
            guard let kind else { continue }
            if record.rollOut?.order == sequence {
                return .success(kind == .halt ? "its roll-out is halted" : "its roll-out goes on")
            }
            if record.digest != before.digest || record.rollOut == nil { return .failure(.hasEnded) }
        }
        return .failure(.noAnswer(limit))
    }

    /// The notices about new records of a content.
    private func notices(of content: FleetSurvey.Content) async throws(FleetStoreError) -> NATSSubscription {
        let key = FleetKey(pipeline: content.pipeline, fingerprint: content.fingerprint)
        do throws(NATSError) {
            return try await client.subscribe(try NATSSubjectPattern("\(FleetBucket.head.republished ?? "")\(key)"))
        } catch {
            throw .nats(error)
        }
    }
}

/// Why what an operator wanted was not done.
enum FleetRequestError: Error, CustomStringConvertible {
    case unknown
    case noRollOut
    case hasEnded
    case noAnswer(Duration)

    var description: String {
        switch self {
        case .unknown:
            "no machine of the fleet has published a content of it; see 'freshetctl fleet status' for the names"
        case .noRollOut: "there is no roll-out of it now"
        case .hasEnded: "its roll-out has ended meanwhile; see 'freshetctl fleet status'"
        case .noAnswer(let limit):
            "no machine that fetches has answered for \(limit.rounded); it may still do so. See 'freshetctl fleet"
                + " status', and the journal of a machine with 'role: fetch'"
        }
    }
}
