@testable import FreshetFleet

extension FuzzTarget {
    /// The text of a record, whose signature has been verified: a publisher may be compromised.
    static let fleetRecord = FuzzTarget(
        "fleet-record", limit: 32 << 10,
        shapes: [
            CostShape("members", before: "{\"z\":0", unit: ",\"a\":1", after: "}", upTo: 16_384),
            CostShape("nesting", before: "{\"a\":", unit: "[", upTo: 16_384),
            CostShape("escapes", before: "{\"version\":1,\"fleet\":\"", unit: "\\n", after: "\"}", upTo: 16_384),
            CostShape(
                "combining characters in a text", before: "{\"version\":1,\"fleet\":\"a", unit: "\u{301}\u{323}",
                after: "\"}", upTo: 16_384),
            CostShape("digits", before: "{\"version\":", unit: "1", after: "}", upTo: 16_384),
        ],
        read: { _ = try? FleetRecord(text: $0) },
        check: { input throws(FuzzViolation) in
            guard let record = try? FleetRecord(text: input) else { return }
            try hold("numbers are in their ranges", record.number > 0 && record.size <= UInt64(Int64.max))
            try hold("a record is read as it is written", (try? FleetRecord(text: record.text)) == record)
        })
}
