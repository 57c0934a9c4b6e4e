import FreshetVarlink

/// Why two contents cannot be compared item by item; `description` completes "the content of generation N".
enum ItemListError: Error, Hashable, CustomStringConvertible {
    case notAnArray
    case noKey(item: Int, path: String)
    case keyTwice(String)

    var description: String {
        switch self {
        case .notAnArray: "is not a JSON array"
        case .noKey(let item, let path):
            "has an item without a key: number \(item + 1) has no text or number at \(path)"
        case .keyTwice(let key): "has several items with the key \(key)"
        }
    }
}

/// The path of an item's key, in the syntax of jq: `.id`, `.meta.name`, or `.` for the item itself.
struct KeyPath: Hashable {
    let names: [String]

    /// Nil unless the text is a list of names of letters, digits, `_` and `-`, each after a dot.
    init?(_ text: String) {
        guard text.utf8.first == UInt8(ascii: ".") else { return nil }
        let parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
        names = text == "." ? [] : parts.map(String.init)
        let isName = { (name: String) in
            !name.isEmpty
                && name.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                        true
                    default: false
                    }
                }
        }
        guard names.allSatisfy(isName) else { return nil }
    }

    var text: String { names.isEmpty ? "." : names.map { "." + $0 }.joined() }
}

/// An item's key, as the JSON text of a string or a number. Keys are compared as bytes: Swift's strings also treat
/// canonically equivalent texts (Unicode) as equal, and an origin does not.
struct ItemKey: Hashable, CustomStringConvertible {
    let bytes: ArraySlice<UInt8>

    var description: String { String(decoding: bytes, as: UTF8.self) }
}

/// The items of a JSON array.
struct ItemList {
    struct Item {
        var key: ItemKey
        var place: Range<Int>
    }

    let items: [Item]
    private let bytes: [UInt8]

    init(_ bytes: [UInt8], key path: KeyPath) throws(ItemListError) {
        self.bytes = bytes
        let places: [(item: Range<Int>, key: Range<Int>?)]
        do throws(JSONScanner.SyntaxError) {
            places = try JSONScanner.elements(of: bytes).map { item throws(JSONScanner.SyntaxError) in
                (item, try JSONScanner.value(at: path.names, in: item, of: bytes))
            }
        } catch {
            throw .notAnArray
        }
        var items: [Item] = []
        items.reserveCapacity(places.count)
        var keys: Set<ItemKey> = []
        for (number, place) in places.enumerated() {
            guard let found = place.key, Self.isKey(bytes[found.lowerBound]) else {
                throw .noKey(item: number, path: path.text)
            }
            let key = ItemKey(bytes: bytes[found])
            guard keys.insert(key).inserted else { throw .keyTwice(key.description) }
            items.append(Item(key: key, place: place.item))
        }
        self.items = items
    }

    /// The JSON text of an item, without white space.
    func value(_ index: Int) -> [UInt8] { JSONScanner.compact(items[index].place, of: bytes) }

    /// Whether a value that begins with this byte is a string or a number.
    private static func isKey(_ first: UInt8) -> Bool {
        first == UInt8(ascii: "\"") || first == UInt8(ascii: "-")
            || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first)
    }
}
