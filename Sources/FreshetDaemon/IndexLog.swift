import FreshetCache
import Logging

/// Logs what was wrong with the cache's index, in one message.
struct IndexLog: Sendable {
    private let log: Logger
    /// Places that are named; more of them are counted.
    private static let places = 12

    init(_ log: Logger) { self.log = log }

    /// What a start found.
    func say(_ report: RecoveryReport, at path: String) {
        say(report.index, at: path)
        guard !report.indexRepairs.isEmpty else { return }
        var places = report.indexRepairs.prefix(Self.places).map(\.description)
        let more = report.indexRepairs.count - places.count
        if more > 0 { places.append("\(more) more") }
        log.say(
            .indexRepaired, [.file: .string(path), .content: .string(places.joined(separator: ", "))])
    }

    /// What became of it.
    func say(_ index: RecoveryReport.Index, at path: String) {
        guard case .rebuilt(let movedTo, let reason) = index else { return }
        log.say(.indexRebuilt, [.file: .string(path), .error: .string(reason), .movedTo: .string(movedTo)])
    }
}
