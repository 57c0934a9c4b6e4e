/// One page of a collection: its items, and the cursor of the next page.
public struct Page<Item: Sendable, Cursor: Hashable & Sendable>: Sendable {
    /// The items. A page may be empty although other pages follow.
    public var items: [Item]
    /// The cursor of the next page, or nil on the last page.
    public var next: Cursor?

    /// Makes a page.
    public init(_ items: [Item], next: Cursor?) {
        self.items = items
        self.next = next
    }
}

/// The state of a `paginated` sequence. Pages and attempts are counted from 1.
public enum PageStatus: Sendable {
    /// A page is being loaded.
    case loading(page: Int, attempt: Int)
    /// This many pages were delivered; the next page waits for an output of the signal.
    case dormant(pages: Int)
    /// A page after the first could not be loaded. If there is a signal, its next output retries the page.
    case failed(page: Int, attempt: Int, any Error)
    /// This many pages were delivered, and no more will be.
    case ended(pages: Int)
}

/// The cursor of a page led back to an earlier page.
public struct RepeatedCursorError: Error, Hashable, CustomStringConvertible {
    /// The cursor, as text.
    public let cursor: String
    /// The number of the page with the cursor, counted from 1; that page was delivered.
    public let page: Int

    /// Makes an error by hand, as tests do.
    public init(cursor: String, page: Int) {
        self.cursor = cursor
        self.page = page
    }

    /// The error as one sentence.
    public var description: String {
        "page \(page) leads back to an earlier page by the cursor \(cursor); the origin's paging never ends; "
            + "load a fixed number of pages or repair the origin"
    }
}
