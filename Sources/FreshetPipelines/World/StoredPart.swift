/// What one request of a staged pipeline delivered last: a part of its snapshot.
package struct StoredPart: Hashable, Sendable {
    /// What the value depends on: the request, the programs, and what stood around them. Validators are used again only
    /// while it is the same.
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

/// A set of pages as it is so far, and where it goes on.
package struct StoredPages: Hashable, Sendable {
    /// The items as they came: one JSON array, and a newline.
    package var items: [UInt8]
    /// How many pages they are of.
    package var count: Int
    /// What the next page is asked for by; nil: there is none.
    package var next: PageBookmark?
    /// What asks for the changes since; nil: all of it has to be asked for.
    package var token: String?

    package init(items: [UInt8], count: Int, next: PageBookmark? = nil, token: String? = nil) {
        self.items = items
        self.count = count
        self.next = next
        self.token = token
    }
}

/// What is known of a part that has pages, without looking into it.
package struct StoredPagesState: Hashable, Sendable {
    /// The part's name.
    package var part: String
    /// How many pages of it are loaded.
    package var count: Int
    /// There is a next one.
    package var hasMore: Bool

    package init(part: String, count: Int, hasMore: Bool) {
        self.part = part
        self.count = count
        self.hasMore = hasMore
    }
}
