/// A run that was requested: the first run of the pipeline whose number is higher than ``after``.
package struct RequestedRun: Codable, Hashable, Sendable {
    package var name: String
    package var after: Int64

    package init(_ name: String, after: Int64) {
        self.name = name
        self.after = after
    }
}
