import FreshetControl
import FreshetFleet
import FreshetModel
import Testing

@testable import FreshetDaemon

@Suite("The state of a fleet")
struct FleetReviewTests {
    private func digest(_ byte: UInt8) throws -> ContentDigest {
        try #require(ContentDigest(bytes: Array(repeating: byte, count: 32)))
    }

    private func content(_ rollOut: FleetRecord.RollOut? = nil) throws -> FleetSurvey.Content {
        var record = FleetRecord(
            fleet: "prod", pipeline: "jwks", fingerprint: try digest(9), number: 7, digest: try digest(2), size: 10,
            checkedAt: WallTime(seconds: 1_795_000_000), madeBy: "ams-3")
        record.rollOut = rollOut
        return FleetSurvey.Content(pipeline: "jwks", fingerprint: try digest(9), record: .success(record))
    }

    private func copy(_ machine: String, _ copy: UInt8?, _ failure: FleetReport.Failure? = nil) throws
        -> FleetSurvey.Copy
    {
        FleetSurvey.Copy(
            machine: machine, report: FleetReport(copy: try copy.map { try digest($0) }, failure: failure),
            reported: WallTime(seconds: 1_795_000_001))
    }

    @Test("members are current, behind, or fail; what they said of other content does not count")
    func counts() throws {
        let copies = [
            try copy("a", 2), try copy("b", 1), try copy("c", nil),
            try copy("d", 1, .init(.rejected, digest(2), "check.jq")),
            try copy("e", 2, .init(.hook, digest(2), "exited with status 1")),
            try copy("f", 2, .init(.hook, digest(1), "before")),
        ]
        let status = FleetReview.status(try content(), copies)
        #expect((status.current, status.behind, status.failed, status.waiting) == (2, 2, 2, 0))
        #expect(status.members.map(\.machine) == ["b", "c", "e", "d"])
        #expect(status.members.map(\.state) == [.behind, .behind, .hookFailed, .rejected])
        #expect(status.members.map(\.error) == [nil, nil, "exited with status 1", "check.jq"])
        #expect(status.number == 7 && status.fetchedBy == "ams-3" && status.rollOut == nil)
    }

    @Test("during a roll-out, members with the content before it wait, and are not behind")
    func waiting() throws {
        let rollOut = FleetRecord.RollOut(
            share: 100_000, since: WallTime(seconds: 1_795_000_000), before: try digest(1), sizeBefore: 5,
            numberBefore: 6)
        let status = FleetReview.status(
            try content(rollOut), [try copy("a", 2), try copy("b", 1), try copy("c", 3)])
        #expect((status.current, status.waiting, status.behind) == (1, 1, 1))
        #expect(status.rollOut?.percentage == 10 && status.rollOut?.halted == false)
    }

    @Test("a record that does not count is shown with its reason")
    func rejected() throws {
        let content = FleetSurvey.Content(
            pipeline: "jwks", fingerprint: try digest(9), record: .failure(.unknownPublisher("UX")))
        let status = FleetReview.status(content, [try copy("a", 2)])
        #expect(status.rejection?.contains("UX") == true && status.number == nil && status.members.isEmpty)
    }
}
