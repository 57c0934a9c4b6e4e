import FreshetVarlink

/// The files of a copy with several files (`cache.files`), read from the JSON object that contains all of them.
struct FileSet {
    /// The largest JSON object that is parsed. The daemon makes such objects in memory, and none is larger.
    static let mostBytes = 64 << 20

    private let members: [JSONScanner.Member]
    private let bytes: [UInt8]

    /// Nil if the content is not a JSON object.
    init?(_ bytes: [UInt8]) {
        guard let members = try? JSONScanner.members(of: bytes) else { return nil }
        self.members = members
        self.bytes = bytes
    }

    var names: [String] { members.map(\.name).sorted() }

    /// The content of a file: the text of a JSON string, or the JSON text of any other value and a newline. Nil if
    /// there is no such file.
    func content(of name: String) -> [UInt8]? {
        guard let member = members.first(where: { $0.name == name }) else { return nil }
        if let text = JSONScanner.string(member.value, of: bytes) { return Array(text.utf8) }
        return bytes[member.value] + [UInt8(ascii: "\n")]
    }
}
