import FreshetControl
import FreshetPipelines

/// The JSON input of a hook of several pipelines, documented in docs/hooks.md.
struct SharedHookChanges: Codable, Hashable, Sendable {
    /// The most changes whose contents are compared. A comparison takes milliseconds, for a large content seconds.
    static let mostDifferences = 100
    /// How long contents are compared in all: the hook waits meanwhile, and so may others.
    static let longestComparisons: Duration = .seconds(10)
    /// The most bytes of all changes with the details of their differences. Beyond it, changes have no details.
    static let detailBytes = 4 << 20

    /// The name of the hook.
    var hook: String
    /// When the hook started: wall-clock microseconds since 1970.
    var time: Int64
    /// The number of the attempt, from 1 after each success.
    var attempt: Int64
    /// The changed pipelines, by name.
    var changes: [HookChange] = []
    /// How many more pipelines have changed; the next run reports them. Nil: none.
    var more: Int64?
    /// How many of the changes have no details of the difference, because there are too many changes or bytes. Nil:
    /// none.
    var withoutDetails: Int64?

    private var bytes = 0
    private var compared = 0

    private enum CodingKeys: CodingKey {
        case hook, time, attempt, changes, more, withoutDetails
    }

    init(_ order: SharedHookMachine.Order, time: Int64) {
        hook = order.hook.name
        self.time = time
        attempt = Int64(order.attempt)
        more = order.more > 0 ? Int64(order.more) : nil
        changes.reserveCapacity(order.changes.count)
    }

    /// Whether the contents of the next change are to be compared.
    var comparesContent: Bool { compared < Self.mostDifferences && bytes < Self.detailBytes }

    /// Appends a change; without the details of its difference if there are too many bytes.
    ///
    /// - Parameter isCompared: whether its contents were compared.
    mutating func append(_ change: HookChange, isCompared: Bool) {
        if isCompared { compared += 1 }
        guard change.hasDetails else {
            // Contents that were not compared may have had details.
            if !isCompared, change.difference != nil { withoutDetails = (withoutDetails ?? 0) + 1 }
            return changes.append(change)
        }
        let count = ControlJSON.text(of: change).utf8.count
        if bytes + count <= Self.detailBytes {
            bytes += count
            changes.append(change)
        } else {
            withoutDetails = (withoutDetails ?? 0) + 1
            changes.append(change.withoutDetails())
        }
    }

    var text: String { ControlJSON.text(of: self) + "\n" }
}
