/// The jq program that extracts everything needed from a page: its items, and the data for the next page. Its outputs
/// are a few texts, so that the daemon itself does not parse a page.
struct PageProgram: Hashable, Sendable {
    /// The parsed outputs for a page.
    struct ParsedPage: Hashable, Sendable {
        /// The items as one JSON array.
        var items: [UInt8]
        var count: Int
        var next: String?
        var more: Bool?
        var total: Int?
        /// The token that requests the changes, if this is the last page.
        var token: String?
    }

    /// The text of the jq program.
    let text: String
    private let pages: PagesDefinition

    /// The number of outputs. In order, they are: the number of items, or `?` and the type found instead; the items;
    /// the data for the next page; whether more pages follow; the total; and, with `sync`, the token.
    private var outputs: Int { pages.sync == nil ? 5 : 6 }

    init(_ pages: PagesDefinition) {
        self.pages = pages
        var next = "\"-\""
        var more = "\"-\""
        var total = "\"-\""
        switch pages.next {
        case .link: break
        case .url(let program):
            next = Self.collecting(program, as: "next.url") + " | \(Self.asText)"
        case .cursor(let rule):
            next = Self.collecting(rule.program, as: "next.cursor") + " | \(Self.asText)"
            more = rule.more.map { Self.collecting($0, as: "next.more") + " | \(Self.asFlag)" } ?? more
        case .lastKey(let rule, _):
            let key = Self.collecting(rule.program, as: "next.last-key")
            next = "if (\(Self.items) | length) == 0 then \"-\" else \(Self.items)[-1] | \(key) | \(Self.asText) end"
            more = rule.more.map { Self.collecting($0, as: "next.more") + " | \(Self.asFlag)" } ?? more
        case .offset(_, let size), .page(_, _, let size):
            total = size.total.map { Self.collecting($0, as: "next.total") + " | \(Self.asCount)" } ?? total
        }
        let token =
            pages.sync.map { ", (\(Self.collecting($0.program, as: "sync-token.token")) | \(Self.asText))" } ?? ""
        text = """
            (\(Self.collecting(pages.items, as: "items"))) as $freshet_items
            | if ($freshet_items | length) != 1 then "?\\($freshet_items | length) outputs"
            elif ($freshet_items[0] | type) != "array" then "?\\($freshet_items[0] | type)"
            else "\\($freshet_items[0] | length)", $freshet_items[0], (\(next)), (\(more)), (\(total))\(token) end
            """
    }

    /// A configured program cannot use this variable: each one is compiled by itself.
    private static let items = "$freshet_items[0]"

    /// An expression that collects all outputs of a configured program. A line break follows the program because of
    /// comments. The outputs are collected before they are processed, since `try` of jq 1.6 also catches errors after
    /// it.
    private static func collecting(_ program: String, as key: String) -> String {
        """
        [try (\(program)
        ) catch error("pages.\(key): " + (if type == "string" then . else tojson end))]
        """
    }

    private static let asText = """
        .[0] | if . == null or . == "" or . == false then "-" elif type == "string" then "=" + .
        elif type == "number" then "=" + tostring else "?" + type end
        """
    private static let asFlag = "if .[-1] then \"=true\" else \"=false\" end"
    private static let asCount = """
        .[0] | if type == "string" then (try tonumber catch "text") else . end
        | if . == null then "-" elif type == "number" then "=" + (floor | tostring) else "?" + type end
        """

    /// - Parameters:
    ///   - outputs: the outputs of the program, each a string's content or JSON.
    ///   - page: the page's number, for messages.
    func parsed(_ outputs: [[UInt8]], page: Int) throws(RunFailure) -> ParsedPage {
        guard let head = outputs.first.map({ String(decoding: $0, as: UTF8.self) }) else {
            throw RunFailure(.content, "page \(page) is empty, where JSON is expected")
        }
        guard let count = Int(head) else {
            let what = head.hasPrefix("?") ? String(head.dropFirst()) : "nothing that can be counted"
            throw RunFailure(
                .content,
                "page \(page): pages.items (\(pages.items)) has to give one array, and gives \(what)")
        }
        guard outputs.count == self.outputs else {
            throw RunFailure(
                .content, "page \(page) is not one JSON text, or a program of 'pages' ended early")
        }
        let total = try text(of: outputs[4], "next.total", "a number", page)
        return ParsedPage(
            items: outputs[1], count: count,
            next: try text(of: outputs[2], nextKey, "text or a number", page),
            more: try text(of: outputs[3], "next.more", "true or false", page).map { $0 == "true" },
            total: try total.map { text throws(RunFailure) in
                guard let number = Int(text) else { throw Self.unfit("next.total", "a number", text, page) }
                return number
            },
            token: pages.sync == nil ? nil : try text(of: outputs[5], "sync-token.token", "text or a number", page))
    }

    private var nextKey: String {
        switch pages.next {
        case .link, .offset, .page: "next"
        case .url: "next.url"
        case .cursor: "next.cursor"
        case .lastKey: "next.last-key"
        }
    }

    private func text(of output: [UInt8], _ key: String, _ expected: String, _ page: Int) throws(RunFailure) -> String?
    {
        let text = String(decoding: output, as: UTF8.self)
        switch text.first {
        case "=": return String(text.dropFirst())
        case "-": return nil
        default: throw Self.unfit(key, expected, String(text.dropFirst().prefix(40)), page)
        }
    }

    private static func unfit(_ key: String, _ expected: String, _ found: String, _ page: Int) -> RunFailure {
        RunFailure(.content, "page \(page): pages.\(key) has to give \(expected), and gives \(found)")
    }

    /// The program that merges items with the same key: the last one is kept, at the position of the first. An item
    /// without a key is never merged. Linear except for one sort: in jq 1.6 a growing object would be copied at each
    /// step.
    ///
    /// - Parameter deleted: a program of an item; items for which it is true are removed.
    static func merging(by key: String, without deleted: String? = nil) -> String {
        """
        . as $freshet_items
        | [range(0; length) as $freshet_place | $freshet_items[$freshet_place]
        | {at: $freshet_place, key: (\(collecting(key, as: "key")) | if . == [] or . == [null]
        then {alone: $freshet_place} else . end), item: .}]
        | group_by(.key) | map({at: .[0].at, item: .[-1].item}) | sort_by(.at) | map(.item)
        """
            + (deleted.map { "\n| map(select(\(collecting($0, as: "sync-token.deleted")) | .[-1] | not))" } ?? "")
    }
}
