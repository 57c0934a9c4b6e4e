/// The one jq program that says all that is to be known of a page: its items, and what leads to the next one. What it
/// puts out is made of a few texts, so that the daemon parses nothing of a page itself.
struct PageProgram: Hashable, Sendable {
    /// A page, read.
    struct Reading: Hashable, Sendable {
        /// The items as one JSON array.
        var items: [UInt8]
        var count: Int
        var next: String?
        var more: Bool?
        var total: Int?
        /// What asks for changes, if this is the last page.
        var token: String?
    }

    /// jq's text.
    let text: String
    private let pages: PagesDefinition

    /// Each output is one of these, in this order: the number of items, or `?` and what else there is; the items; what
    /// leads to the next page; whether more follow; how many there are in all; and, if it is asked for, the token.
    private var outputs: Int { pages.sync == nil ? 5 : 6 }

    init(_ pages: PagesDefinition) {
        self.pages = pages
        var next = "\"-\""
        var more = "\"-\""
        var total = "\"-\""
        switch pages.next {
        case .link: break
        case .url(let program):
            next = Self.asked(program, as: "next.url") + " | \(Self.asText)"
        case .cursor(let rule):
            next = Self.asked(rule.program, as: "next.cursor") + " | \(Self.asText)"
            more = rule.more.map { Self.asked($0, as: "next.more") + " | \(Self.asFlag)" } ?? more
        case .lastKey(let rule, _):
            let key = Self.asked(rule.program, as: "next.last-key")
            next = "if (\(Self.items) | length) == 0 then \"-\" else \(Self.items)[-1] | \(key) | \(Self.asText) end"
            more = rule.more.map { Self.asked($0, as: "next.more") + " | \(Self.asFlag)" } ?? more
        case .offset(_, let size), .page(_, _, let size):
            total = size.total.map { Self.asked($0, as: "next.total") + " | \(Self.asCount)" } ?? total
        }
        let token = pages.sync.map { ", (\(Self.asked($0.program, as: "sync-token.token")) | \(Self.asText))" } ?? ""
        text = """
            (\(Self.asked(pages.items, as: "items"))) as $freshet_items
            | if ($freshet_items | length) != 1 then "?\\($freshet_items | length) outputs"
            elif ($freshet_items[0] | type) != "array" then "?\\($freshet_items[0] | type)"
            else "\\($freshet_items[0] | length)", $freshet_items[0], (\(next)), (\(more)), (\(total))\(token) end
            """
    }

    /// No program of the configuration's can know it: each compiles by itself.
    private static let items = "$freshet_items[0]"

    /// All outputs of a program of the configuration's. It ends on a line of its own, because of comments. Collected
    /// before anything else happens to them, since `try` of jq 1.6 also catches what goes wrong behind it.
    private static func asked(_ program: String, as key: String) -> String {
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
    ///   - outputs: what the program put out, each a string's content or JSON.
    ///   - page: its number, for messages.
    func reading(_ outputs: [[UInt8]], page: Int) throws(RunFailure) -> Reading {
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
                .content, "page \(page) is not one JSON text, or a program of 'pages' ended before its time")
        }
        let total = try text(of: outputs[4], "next.total", "a number", page)
        return Reading(
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

    private func text(of output: [UInt8], _ key: String, _ wanted: String, _ page: Int) throws(RunFailure) -> String? {
        let text = String(decoding: output, as: UTF8.self)
        switch text.first {
        case "=": return String(text.dropFirst())
        case "-": return nil
        default: throw Self.unfit(key, wanted, String(text.dropFirst().prefix(40)), page)
        }
    }

    private static func unfit(_ key: String, _ wanted: String, _ found: String, _ page: Int) -> RunFailure {
        RunFailure(.content, "page \(page): pages.\(key) has to give \(wanted), and gives \(found)")
    }

    /// The program that merges the items of one key: the last counts, at the place of the first. An item without a key
    /// is like no other. Linear but for one sort: in jq 1.6 an object that grows would be copied at each step.
    ///
    /// - Parameter deleted: a program of an item; those for which it holds are left out.
    static func merging(by key: String, without deleted: String? = nil) -> String {
        """
        . as $freshet_items
        | [range(0; length) as $freshet_place | $freshet_items[$freshet_place]
        | {at: $freshet_place, key: (\(asked(key, as: "key")) | if . == [] or . == [null]
        then {alone: $freshet_place} else . end), item: .}]
        | group_by(.key) | map({at: .[0].at, item: .[-1].item}) | sort_by(.at) | map(.item)
        """
            + (deleted.map { "\n| map(select(\(asked($0, as: "sync-token.deleted")) | .[-1] | not))" } ?? "")
    }
}
