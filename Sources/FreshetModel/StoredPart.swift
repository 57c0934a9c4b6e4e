/// The last value of one request in a pipeline with several requests: a part of its snapshot.
package struct StoredPart: Hashable, Sendable {
    /// A hash of everything that the value depends on: the request, the programs, the surrounding items. Validators are
    /// used again only while it is the same.
    package var binding: String
    package var validators: Validators
    /// One JSON text.
    package var value: [UInt8]
    /// The pages that the value is made of, if they may be continued.
    package var pages: StoredPages?

    package init(binding: String, validators: Validators, value: [UInt8], pages: StoredPages? = nil) {
        self.binding = binding
        self.validators = validators
        self.value = value
        self.pages = pages
    }
}

/// A set of pages so far, and where it continues.
package struct StoredPages: Hashable, Sendable {
    /// The items as received: one JSON array, then a newline.
    package var items: [UInt8]
    /// The number of loaded pages.
    package var count: Int
    /// Where the next page is; nil: there is none.
    package var next: PageBookmark?
    /// The token that requests later changes; nil: everything has to be requested.
    package var token: String?

    package init(items: [UInt8], count: Int, next: PageBookmark? = nil, token: String? = nil) {
        self.items = items
        self.count = count
        self.next = next
        self.token = token
    }
}

/// The state of a part with pages, without its content.
package struct StoredPagesState: Hashable, Sendable {
    /// The part's name.
    package var part: String
    /// The number of its loaded pages.
    package var count: Int
    /// Whether there is a next page.
    package var hasMore: Bool

    package init(part: String, count: Int, hasMore: Bool) {
        self.part = part
        self.count = count
        self.hasMore = hasMore
    }
}
