import FreshetCache
import Logging

/// Logs the damage of the cache's index in one message.
struct IndexLog: Sendable {
    private let log: Logger
    /// The maximum number of repairs that the message names; it counts the others.
    private static let namedRepairs = 12

    init(_ log: Logger) { self.log = log }

    /// Logs what the start of the daemon found.
    func log(_ report: RecoveryReport, at path: String) {
        log(report.index, at: path)
        guard !report.indexRepairs.isEmpty else { return }
        var repairs = report.indexRepairs.prefix(Self.namedRepairs).map(\.description)
        let more = report.indexRepairs.count - repairs.count
        if more > 0 { repairs.append("\(more) more") }
        log.log(
            .indexRepaired, [.file: .string(path), .content: .string(repairs.joined(separator: ", "))])
    }

    /// Logs that the index was rebuilt.
    func log(_ index: RecoveryReport.Index, at path: String) {
        guard case .rebuilt(let movedTo, let reason) = index else { return }
        log.log(.indexRebuilt, [.file: .string(path), .error: .string(reason), .movedTo: .string(movedTo)])
    }
}
