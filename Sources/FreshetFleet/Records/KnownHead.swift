/// The newest record of one pipeline that a member has seen. It never goes back: a replayed record, a server that lost
/// its state, and an emptied bucket change nothing.
package struct KnownHead: Hashable, Sendable {
    /// What a verified record means for the member.
    package enum Change: Hashable, Sendable {
        /// Other content than that of the last record; `gap` counts the records between them that were not seen.
        case content(FleetRecord, gap: UInt64)
        /// A check that found the same content: the copy is confirmed.
        case confirmation(FleetRecord)
        /// The record that is known already.
        case known
    }

    package private(set) var record: FleetRecord?
    /// The numbers of records that were made before this member lost its state count too.
    private var highest: UInt64 = 0

    /// - Parameter number: the highest number that was seen before a restart; 0: none.
    package init(seen number: UInt64 = 0) { highest = number }

    /// The highest number that was seen; 0: none.
    package var number: UInt64 { highest }

    /// A verified record has come.
    ///
    /// - Throws: ``RecordRejection/older(number:seen:)`` or ``RecordRejection/conflicting(number:)``.
    package mutating func saw(_ new: FleetRecord) throws(RecordRejection) -> Change {
        guard new.number >= highest else { throw .older(number: new.number, seen: highest) }
        if new.number == highest, let record {
            guard record == new else { throw .conflicting(number: new.number) }
            return .known
        }
        let before = record
        // `highest` is less than the number, or both are equal after a restart.
        let gap = new.number > highest ? new.number - highest - 1 : 0
        (record, highest) = (new, new.number)
        return before?.digest == new.digest ? .confirmation(new) : .content(new, gap: gap)
    }
}
