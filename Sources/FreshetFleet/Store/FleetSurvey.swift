package import FreshetModel
package import FreshetNATS

/// Reads what the buckets say about a whole fleet: for people, not for members.
package struct FleetSurvey: Sendable {
    /// A member that exists.
    package struct Machine: Hashable, Sendable {
        package var name: String
        package var version: String
        package var fetches: Bool
    }

    /// The content of one pipeline and definition.
    package struct Content: Sendable {
        package var pipeline: String
        package var fingerprint: ContentDigest
        /// The newest record, or why it does not count.
        package var record: Result<FleetRecord, RecordRejection>

        package init(pipeline: String, fingerprint: ContentDigest, record: Result<FleetRecord, RecordRejection>) {
            self.pipeline = pipeline
            self.fingerprint = fingerprint
            self.record = record
        }
    }

    /// What a member says about its copy.
    package struct Copy: Hashable, Sendable {
        package var machine: String
        package var report: FleetReport
        package var reported: WallTime

        package init(machine: String, report: FleetReport, reported: WallTime) {
            self.machine = machine
            self.report = report
            self.reported = reported
        }
    }

    /// The most members, pipelines, and copies of a pipeline that are read.
    private static let most = 200_000

    private let store: FleetStore
    private let fleet: String
    private let publishers: Set<NKeyPublicKey>

    package init(_ store: FleetStore, fleet: String, publishers: Set<NKeyPublicKey>) {
        self.store = store
        self.fleet = fleet
        self.publishers = publishers
    }

    package func machines() async throws(FleetStoreError) -> [Machine] {
        try await store.list(.status, "*", limit: Self.most).compactMap { stored -> Machine? in
            guard let reader = MemberReader(stored.message.payload), let name = try? reader.machine("machine") else {
                return nil
            }
            let version = ((try? reader.text("version", atMost: 64)) ?? nil) ?? "unknown"
            return Machine(name: name, version: version, fetches: (try? reader.name("role")) == "fetch")
        }
    }

    /// The contents of all pipelines, or of one.
    package func contents(of pipeline: String?) async throws(FleetStoreError) -> [Content] {
        let pattern = "\(pipeline.map { FleetKey.token(of: $0) } ?? "*").*"
        return try await store.list(.head, pattern, limit: Self.most).compactMap { stored -> Content? in
            let parts = stored.subject.dropFirst(FleetBucket.head.prefix.count).split(separator: ".")
            guard parts.count == 2, let fingerprint = ContentDigest(hexadecimal: parts[1]) else { return nil }
            let pipeline = String(parts[0]).replacing("=", with: ".")
            let subject = FleetSubject(fleet: fleet, pipeline: pipeline, fingerprint: fingerprint)
            return Content(
                pipeline: pipeline, fingerprint: fingerprint,
                record: Result { () throws(RecordRejection) in
                    try SignedRecord(stored.message.headers).verified(by: publishers, for: subject)
                })
        }
    }

    /// The record of a notice about a content; nil: it does not count.
    package func record(_ notice: NATSMessage, of content: Content) -> FleetRecord? {
        let subject = FleetSubject(fleet: fleet, pipeline: content.pipeline, fingerprint: content.fingerprint)
        return try? SignedRecord(notice.headers).verified(by: publishers, for: subject)
    }

    package func copies(of content: Content) async throws(FleetStoreError) -> [Copy] {
        let key = FleetKey(pipeline: content.pipeline, fingerprint: content.fingerprint)
        return try await store.list(.report, "\(key).*", limit: Self.most).compactMap { stored -> Copy? in
            guard let report = FleetReport(text: stored.message.payload), let end = stored.subject.lastIndex(of: ".")
            else { return nil }
            return Copy(
                machine: String(stored.subject[end...].dropFirst()), report: report, reported: stored.time)
        }
    }
}
