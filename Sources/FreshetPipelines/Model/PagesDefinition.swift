/// How a paginated source is read: where the next page is, what a page's items are, how many pages are loaded.
package struct PagesDefinition: Hashable, Sendable {
    package var next: NextRule
    /// A jq program that gives a page's items as one array.
    package var items: String
    /// A jq program that gives an item's key. Of items with the same key, the last one is kept, at the position of the
    /// first.
    package var key: String?
    package var load: PageLoad
    /// The most pages. If a set has more, the rest is missing and the snapshot is marked as truncated.
    package var max: Int
    /// Whether a next link to another origin fails the run.
    package var sameOrigin: Bool
    /// How a check requests only the changes; nil: each check requests everything.
    package var sync: SyncRule?

    /// The default: a page is the array of its items.
    package static let defaultItems = "."
    /// The limit on pages unless configured: it bounds a mistake, and with a hundred items per page few APIs have more.
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

    /// Whether further pages are loaded on demand: the loaded pages are kept, so that more can follow.
    package var loadsOnDemand: Bool { load != .all }

    /// Whether the loaded items are kept for a later run.
    package var keepsItems: Bool { loadsOnDemand || sync != nil }

    /// The jq programs of the definition.
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

    /// The configuration keys whose values are programs.
    package static let programKeys = ["url", "cursor", "last-key", "more", "total", "items", "key", "token", "deleted"]

    /// All settings that decide what the snapshot becomes, as text.
    package var summary: String {
        "\(next) items:\(items) key:\(key ?? "") load:\(load) max:\(max) same-origin:\(sameOrigin)"
            + (sync.map { " sync:\($0)" } ?? "")
    }
}

/// A token of the last page, with which the next check requests the changes since.
package struct SyncRule: Hashable, Sendable {
    /// A jq program of the last page that gives the token.
    package var program: String
    /// The query parameter's name, not encoded.
    package var parameter: String
    /// A jq program of an item: whether the item was deleted. Nil: the origin does not report deletions.
    package var deleted: String?

    package init(_ program: String, parameter: String, deleted: String? = nil) {
        self.program = program
        self.parameter = parameter
        self.deleted = deleted
    }
}

/// How many pages a check loads.
package enum PageLoad: Hashable, Sendable {
    /// All pages.
    case all
    /// This number of pages; at least 1.
    case first(Int)
}

/// How the next page is found.
package enum NextRule: Hashable, Sendable {
    /// `Link: <…>; rel="next"` (RFC 8288).
    case link
    /// A jq program gives the URL, absolute or relative to the page's URL; no output or null ends the set.
    case url(String)
    /// A jq program gives a cursor or token for a query parameter; no output, null or an empty text ends the set.
    case cursor(CursorRule)
    /// This parameter is the number of items so far.
    case offset(parameter: String, PageSize)
    /// This parameter is the page's number.
    case page(parameter: String, first: Int, PageSize)
    /// Like a cursor, but the program's input is a page's last item, and a short page ends the set.
    case lastKey(CursorRule, PageSize)
}

/// A value of a page that becomes a query parameter of the next page's URL.
package struct CursorRule: Hashable, Sendable {
    /// A jq program.
    package var program: String
    /// The query parameter's name, not encoded.
    package var parameter: String
    /// A jq program of the page: whether more pages follow.
    package var more: String?

    package init(_ program: String, parameter: String, more: String? = nil) {
        self.program = program
        self.parameter = parameter
        self.more = more
    }
}

/// How the end of a counted set is found.
///
/// | known | the set ends |
/// | --- | --- |
/// | `total` | when this number of items, or pages, is loaded |
/// | `size` | with a page of fewer items |
/// | neither | with a page without items |
package struct PageSize: Hashable, Sendable {
    /// The number of items of each page but the last.
    package var size: Int?
    /// The query parameter for `size`.
    package var parameter: String?
    /// A jq program for the total number of items, or of pages if pages are counted. Null: the total is not known, and
    /// the set ends as if `total` were not configured.
    package var total: String?
    /// The status that the origin answers for a page after the last one.
    package var pastEnd: Int?

    package init(_ size: Int? = nil, parameter: String? = nil, total: String? = nil, pastEnd: Int? = nil) {
        self.size = size
        self.parameter = parameter
        self.total = total
        self.pastEnd = pastEnd
    }
}
