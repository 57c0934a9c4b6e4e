@testable import FreshetUnpack

extension FuzzTarget {
    /// The report of an unpack helper; the same bytes are also the path of a member.
    static let unpackReport = FuzzTarget(
        "unpack-report",
        shapes: [
            CostShape("a path", before: "a", unit: "b", after: "/c.d"),
            CostShape("components", before: "a", unit: "b/", after: "c.d"),
            CostShape("an incomplete path", before: "a/", unit: "bc."),
        ],
        read: { input in
            keep(UnpackReport(input))
            keep(pattern.matches(input))
        },
        check: { input throws(FuzzViolation) in
            if let report = UnpackReport(input) {
                try hold("a report has its longest message", input.count <= UnpackReport.maxMessage + 6)
                let again = UnpackReport(report.bytes)
                try hold("a report that is written again has its status", again?.status == report.status)
                try hold("a report that is written again has its gaps", again?.gaps == report.gaps)
            }
            guard pattern.matches(input) else { return }
            try hold("a star stands for no slash", input.count { $0 == UInt8(ascii: "/") } == 1)
            try hold("the parts of a pattern are in the path", input.first == UInt8(ascii: "a"))
            try hold("the last part is at the end", input.last == UInt8(ascii: "d"))
        })

    private static let pattern = MemberPattern("a*b*/*c.*d")
}
