import FreshetVarlink

/// The files of a copy that has several (`cache.files`), found in the JSON object that has them all.
struct FileSet {
    /// More than that no such object has: it is made in memory.
    static let mostBytes = 64 << 20

    private let members: [JSONScanner.Member]
    private let bytes: [UInt8]

    /// Nil: it is no JSON object.
    init?(_ bytes: [UInt8]) {
        guard let members = try? JSONScanner.members(of: bytes) else { return nil }
        self.members = members
        self.bytes = bytes
    }

    var names: [String] { members.map(\.name).sorted() }

    /// What stands in the file: a string as it is, anything else as its JSON text, with a newline. Nil: there is none.
    func content(of name: String) -> [UInt8]? {
        guard let member = members.first(where: { $0.name == name }) else { return nil }
        if let text = JSONScanner.string(member.value, of: bytes) { return Array(text.utf8) }
        return bytes[member.value] + [UInt8(ascii: "\n")]
    }
}
