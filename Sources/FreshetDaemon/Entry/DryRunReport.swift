import FreshetControl
import FreshetSystemd

/// The result of a dry run, as text for people and as JSON for scripts.
struct DryRunReport: Codable, Hashable, Sendable {
    /// The effect that the run would have on the copy.
    enum Outcome: String, Codable, Hashable, Sendable {
        case changed, unchanged, failed
    }

    /// The copy that readers see.
    struct Copy: Codable, Hashable, Sendable {
        var path: String
        var size: Int64
        var digest: String
    }

    /// A branch that failed while the run did not.
    struct Branch: Codable, Hashable, Sendable {
        var branch: String
        var failure: String
    }

    var name: String
    var outcome: Outcome
    /// The size of the content that would be committed, in bytes.
    var size: Int64?
    /// SHA-256 in hexadecimal digits.
    var digest: String?
    var mediaType: String?
    /// The source has more pages than `pages.max` allows.
    var truncated: Bool?
    var requests: Int64?
    /// Nil: there is no copy yet.
    var current: Copy?
    var difference: ContentDifference?
    var branches: [Branch]?
    /// Why the run failed.
    var failure: String?

    /// The report for people; it ends with a line break.
    var text: String {
        guard let size, let digest else { return "" }
        var lines: [String] = []
        func add(_ title: String, _ value: String) { lines.append("  \(title): \(PlainText.escaping(value))") }
        switch (outcome, current) {
        case (.unchanged, _): lines.append("\(name): unchanged")
        case (_, nil): lines.append("\(name): would be the first copy")
        case (_, _): lines.append("\(name): would change")
        }
        if let mediaType { add("media type", mediaType) }
        let before = outcome == .changed ? current : nil
        add("size", "\(size) bytes" + (before.map { ", was \($0.size)" } ?? ""))
        add("sha256", digest + (before.map { ", was \($0.digest)" } ?? ""))
        if truncated == true { add("truncated", "there are more pages than 'pages.max' allows") }
        for branch in branches ?? [] { add("branch '\(branch.branch)' failed", branch.failure) }
        if let difference { lines += Self.lines(of: difference) }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func lines(of difference: ContentDifference) -> [String] {
        if let items = difference.items { return ["  difference: \(items.sentence)"] }
        guard let changes = difference.changes else {
            return (difference.lines ?? []) + (difference.isCut == true ? ["…"] : [])
        }
        guard !changes.isEmpty else { return ["  difference: only the formatting of the JSON"] }
        return changes.map { change in
            let what = change.member.isEmpty ? "difference" : "  .\(PlainText.escaping(change.member))"
            return "  \(what): \(PlainText.escaping(change.sentence))"
        }
    }
}
