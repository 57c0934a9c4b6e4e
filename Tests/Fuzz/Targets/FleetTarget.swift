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

    /// The text of a claim, which is not signed, and the time of a message, which a publisher can write too.
    static let fleetClaim = FuzzTarget(
        "fleet-claim", limit: 8 << 10,
        shapes: [
            CostShape("members", before: "{\"z\":0", unit: ",\"a\":1", after: "}", upTo: 4_096),
            CostShape("digits", before: "{\"machine\":\"a\",\"nonce\":\"b\",\"pause-s\":", unit: "1", upTo: 4_096),
        ],
        read: { _ = FleetClaim.Holder(text: $0) },
        check: { input throws(FuzzViolation) in
            _ = Timestamp.parse(String(decoding: input, as: UTF8.self))
            guard let holder = FleetClaim.Holder(text: input) else { return }
            try hold("a pause is bounded", (holder.pause?.duration ?? .zero) <= FleetPause.longest)
            try hold("a claim is read as it is written", FleetClaim.Holder(text: holder.text) == holder)
        })
}
