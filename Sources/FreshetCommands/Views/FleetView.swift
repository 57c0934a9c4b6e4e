import FreshetControl
import FreshetRender

/// The state of a fleet as tables.
struct FleetView {
    /// The most members in the table; `--json` has more.
    private static let mostMembers = 50

    let overview: FleetOverview
    let times: Times

    var table: Table {
        Table(
            columns: [
                .init("PIPELINE", shrinksTo: 12), .init("NUMBER", .right), .init("SIZE", .right, goes: 3),
                .init("CHECKED"), .init("BY", shrinksTo: 8, goes: 2), .init("CURRENT", .right),
                .init("BEHIND", .right), .init("FAILED", .right), .init("ROLL-OUT", shrinksTo: 12, goes: 1),
            ], rows: overview.pipelines.map(row))
    }

    private func row(_ pipeline: FleetPipelineStatus) -> [Table.Cell] {
        let name = isAmbiguous(pipeline) ? "\(pipeline.pipeline) (\(pipeline.definition.prefix(8)))" : pipeline.pipeline
        if let rejection = pipeline.rejection {
            return [
                Table.Cell(name, .bad), "-", "-", "-", "-", "-", "-", "-", Table.Cell("rejected: \(rejection)", .bad),
            ]
        }
        return [
            Table.Cell(name, pipeline.failed > 0 ? .bad : pipeline.behind > 0 ? .busy : .good),
            Table.Cell(pipeline.number.map { "\($0)" } ?? "-"),
            Table.Cell(pipeline.size.map { SizeText.bytes(Int64(clamping: $0)) } ?? "-"),
            Table.Cell(pipeline.checked.map(times.past) ?? "-"),
            Table.Cell(pipeline.fetchedBy ?? "-"),
            Table.Cell("\(pipeline.current)"),
            Table.Cell("\(pipeline.behind)", pipeline.behind > 0 ? .busy : .plain),
            Table.Cell("\(pipeline.failed)", pipeline.failed > 0 ? .bad : .plain),
            Table.Cell(Self.text(of: pipeline, times), pipeline.rollOut?.halted == true ? .bad : .plain),
        ]
    }

    /// Whether members of the fleet have several definitions of this name.
    private func isAmbiguous(_ pipeline: FleetPipelineStatus) -> Bool {
        overview.pipelines.count { $0.pipeline == pipeline.pipeline } > 1
    }

    /// Such as `10% since 3min ago, 900 wait`.
    private static func text(of pipeline: FleetPipelineStatus, _ times: Times) -> String {
        guard let rollOut = pipeline.rollOut else { return "-" }
        let percentage = PercentText.text(rollOut.percentage)
        let state = rollOut.halted ? "halted at \(percentage)" : "\(percentage) since \(times.past(rollOut.since))"
        return pipeline.waiting > 0 ? "\(state), \(pipeline.waiting) wait" : state
    }

    var total: String {
        let versions = overview.versions.count > 1 ? ", \(overview.versions.count) versions of Freshet" : ""
        return "Fleet \(DisplayText.harmless(overview.name)): \(Count.text(overview.machines, "machine"))"
            + " (\(overview.fetching) with role fetch), \(Count.text(overview.pipelines.count, "pipeline"))\(versions)."
    }

    /// The members that are behind or fail.
    var members: Table {
        let rows = overview.pipelines.flatMap { pipeline in pipeline.members.map { (pipeline.pipeline, $0) } }
        return Table(
            columns: [
                .init("MACHINE", shrinksTo: 10), .init("PIPELINE", shrinksTo: 10), .init("STATE"), .init("SINCE"),
                .init("ERROR", shrinksTo: 12, goes: 1),
            ],
            rows: rows.prefix(Self.mostMembers).map { name, member in
                [
                    Table.Cell(member.machine), Table.Cell(name), Table.Cell(Self.text(of: member.state), .bad),
                    Table.Cell(times.past(member.reported)), Table.Cell(member.error ?? ""),
                ]
            })
    }

    var membersTotal: String {
        let count = overview.pipelines.map { $0.behind + $0.failed }.reduce(0, +)
        let hidden = count > Int64(Self.mostMembers) ? "; --json lists more of them" : ""
        return "\(Count.text(count, "copy")) behind or failing\(hidden)."
            .replacing("copys", with: "copies")
    }

    static func text(of state: FleetMemberStatus.State) -> String {
        switch state {
        case .behind: "behind"
        case .rejected: "rejects it"
        case .hookFailed: "hook fails"
        }
    }
}

/// Such as `10%` and `0.5%`.
enum PercentText {
    static func text(_ share: Double) -> String {
        share == share.rounded() ? "\(Int64(max(0, min(100, share))))%" : "\(share)%"
    }
}
