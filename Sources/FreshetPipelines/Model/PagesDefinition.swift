/// How a source that comes in pages is read: where the next page is, what a page's items are, how many are loaded.
package struct PagesDefinition: Hashable, Sendable {
    package var next: NextRule
    /// A jq program that gives a page's items as one array.
    package var items: String
    /// A jq program that gives an item's key. Items of one key are one: the last counts, at the place of the first.
    package var key: String?
    package var load: PageLoad
    /// The most pages. What a set had beyond them is missing, and its snapshot is marked as truncated.
    package var max: Int
    /// Next links to another origin are refused.
    package var sameOrigin: Bool
    /// How only what has changed is asked for; nil: all of it is, each time.
    package var sync: SyncRule?

    /// A page is its items.
    package static let defaultItems = "."
    /// The limit on pages where none is configured: a mistake ends, and with a hundred items each few APIs have more.
    package static let defaultMax = 1000

    package init(
        next: NextRule, items: String = PagesDefinition.defaultItems, key: String? = nil, load: PageLoad = .all,
        max: Int = PagesDefinition.defaultMax, sameOrigin: Bool = true, sync: SyncRule? = nil
    ) {
        self.next = next
        self.items = items
        self.key = key
        self.load = load
        self.max = max
        self.sameOrigin = sameOrigin
        self.sync = sync
    }

    /// Not all pages are loaded without being asked for: what was loaded is kept, so that more can follow.
    package var loadsOnDemand: Bool { load != .all }

    /// What was loaded is kept for what comes after it.
    package var keepsItems: Bool { loadsOnDemand || sync != nil }

    /// Its jq programs.
    package var programs: [String] {
        let ofNext: [String?] =
            switch next {
            case .link: []
            case .url(let program): [program]
            case .cursor(let rule), .lastKey(let rule, _): [rule.program, rule.more]
            case .offset(_, let size), .page(_, _, let size): [size.total]
            }
        return ofNext.compactMap(\.self) + (items == Self.defaultItems ? [] : [items])
            + [key, sync?.program, sync?.deleted].compactMap(\.self)
    }

    /// The keys whose values are programs.
    package static let programKeys = ["url", "cursor", "last-key", "more", "total", "items", "key", "token", "deleted"]

    /// What decides which snapshot becomes of it, as text.
    package var summary: String {
        "\(next) items:\(items) key:\(key ?? "") load:\(load) max:\(max) same-origin:\(sameOrigin)"
            + (sync.map { " sync:\($0)" } ?? "")
    }
}

/// A token of the last page, by which the next check asks for what has changed since.
package struct SyncRule: Hashable, Sendable {
    /// A jq program of the last page that gives the token.
    package var program: String
    /// The query parameter's name, not encoded.
    package var parameter: String
    /// A jq program of an item: whether it is there no more. Nil: what is deleted is not told.
    package var deleted: String?

    package init(_ program: String, parameter: String, deleted: String? = nil) {
        self.program = program
        self.parameter = parameter
        self.deleted = deleted
    }
}

/// How many pages are loaded without being asked for.
package enum PageLoad: Hashable, Sendable {
    /// As many as there are.
    case all
    /// So many; at least 1.
    case first(Int)
}

/// Where a page says that the next one is.
package enum NextRule: Hashable, Sendable {
    /// `Link: <…>; rel="next"` (RFC 8288).
    case link
    /// A jq program gives the URL, absolute or relative to the page's, and nothing or null at the end.
    case url(String)
    /// A jq program gives a cursor or token, which goes into a parameter of the query; nothing, null or an empty text at
    /// the end.
    case cursor(CursorRule)
    /// The number of items so far goes into this parameter.
    case offset(parameter: String, PageSize)
    /// The page's number goes into this parameter.
    case page(parameter: String, first: Int, PageSize)
    /// As a cursor, but that the program is asked of a page's last item, and that a short page is the last one.
    case lastKey(CursorRule, PageSize)
}

/// What is taken from a page and put into the query of the next one's URL.
package struct CursorRule: Hashable, Sendable {
    /// A jq program.
    package var program: String
    /// The query parameter's name, not encoded.
    package var parameter: String
    /// A jq program of the page: whether more follow.
    package var more: String?

    package init(_ program: String, parameter: String, more: String? = nil) {
        self.program = program
        self.parameter = parameter
        self.more = more
    }
}

/// By what a counted set ends.
///
/// | known | the set ends |
/// | --- | --- |
/// | `total` | when so many items, or pages, are there |
/// | `size` | with a page of fewer items |
/// | neither | with a page without items |
package struct PageSize: Hashable, Sendable {
    /// How many items a page has that is not the last.
    package var size: Int?
    /// The query parameter in which that many are asked for.
    package var parameter: String?
    /// A jq program that gives how many items there are in all, or pages if it is pages that are counted. Null: not
    /// known, and it ends as if it were not configured.
    package var total: String?
    /// The status with which the origin answers for a page after the last one.
    package var pastEnd: Int?

    package init(_ size: Int? = nil, parameter: String? = nil, total: String? = nil, pastEnd: Int? = nil) {
        self.size = size
        self.parameter = parameter
        self.total = total
        self.pastEnd = pastEnd
    }
}
