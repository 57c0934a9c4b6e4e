/// Where a set of pages continues: everything that the requests for the next page and the pages after it need.
package struct PageBookmark: Hashable, Sendable {
    /// The next page's number, at least 2.
    package var page: Int
    /// The number of items of the pages before it.
    package var items: Int
    package var url: String
    /// The URL's host, without port and without the brackets of an IPv6 address.
    package var host: String
    /// All pages so far are at the origin of the source, so that the next request carries its header fields.
    package var isAtHome: Bool
    /// Hashes of the requested URLs, in the order of their pages.
    package var seen: [UInt64]

    package init(page: Int, items: Int, url: String, host: String, isAtHome: Bool, seen: [UInt64]) {
        self.page = page
        self.items = items
        self.url = url
        self.host = host
        self.isAtHome = isAtHome
        self.seen = seen
    }
}

/// The stored form: four lines, whose parts cannot contain a newline.
extension PageBookmark: LosslessStringConvertible {
    private static let radix = 36

    package var description: String {
        let seen = seen.map { String($0, radix: Self.radix) }.joined(separator: " ")
        return "\(page) \(items) \(isAtHome ? "home" : "away")\n\(host)\n\(url)\n\(seen)"
    }

    package init?(_ description: String) {
        let lines = description.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count == 4 else { return nil }
        let numbers = lines[0].split(separator: " ")
        guard numbers.count == 3, let page = Int(numbers[0]), page > 1, let items = Int(numbers[1]), items >= 0,
            ["home", "away"].contains(numbers[2]), !lines[2].isEmpty
        else { return nil }
        let seen = lines[3].split(separator: " ").map { UInt64($0, radix: Self.radix) }
        guard !seen.contains(nil) else { return nil }
        self.init(
            page: page, items: items, url: String(lines[2]), host: String(lines[1]), isAtHome: numbers[2] == "home",
            seen: seen.compactMap(\.self))
    }
}
