/// Some items, and where the next ones are.
public struct Page<Item: Sendable, Cursor: Hashable & Sendable>: Sendable {
    /// The items; a page may be empty although others follow.
    public var items: [Item]
    /// What leads to the next page, or nil for the last one.
    public var next: Cursor?

    /// Makes a page.
    public init(_ items: [Item], next: Cursor?) {
        self.items = items
        self.next = next
    }
}

/// What a `paginated` sequence is doing. Pages and attempts are counted from 1.
public enum PageStatus: Sendable {
    /// A page is being loaded.
    case loading(page: Int, attempt: Int)
    /// This many pages were delivered; the next one waits for an output of the signal.
    case dormant(pages: Int)
    /// A page after the first could not be loaded. An output of the signal tries again, if there is a signal.
    case failed(page: Int, attempt: Int, any Error)
    /// This many pages were delivered, and no more will be.
    case ended(pages: Int)
}

/// A page led back to one before it.
public struct RepeatedCursorError: Error, Hashable, CustomStringConvertible {
    /// The cursor, as text.
    public let cursor: String
    /// The page that brought it, counted from 1; it was delivered.
    public let page: Int

    /// Makes an error by hand, as tests do.
    public init(cursor: String, page: Int) {
        self.cursor = cursor
        self.page = page
    }

    /// One sentence for people.
    public var description: String {
        "page \(page) leads back to a page before it by the cursor \(cursor); the origin's paging never ends, "
            + "so load a fixed number of pages or have the origin mended"
    }
}
