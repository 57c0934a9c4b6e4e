/// Where a set of pages goes on: all that has to be known to ask for the next page, and for those after it.
package struct PageBookmark: Hashable, Sendable {
    /// The next page's number, at least 2.
    package var page: Int
    /// How many items the pages before it have.
    package var items: Int
    package var url: String
    /// The URL's host, without port and without the brackets of an IPv6 address.
    package var host: String
    /// The pages have stayed at the origin of the source, so that its header fields go along.
    package var isAtHome: Bool
    /// Numbers of the URLs that were asked for, in the order of their pages.
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

/// As text, to be kept: a few lines, none of whose parts can hold a newline.
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

    /// A URL's number. Two with one number would be taken for one page: an origin can only harm itself by that.
    static func number(of url: String) -> UInt64 {
        var number = BindingNumber()
        number.add(url)
        return number.short
    }
}
