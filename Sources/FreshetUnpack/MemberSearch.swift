/// A member of an archive.
struct ArchiveMember: Hashable {
    enum Kind: Hashable {
        case file
        /// Anything else, as a noun with its article.
        case other(String)
    }

    /// The path as the archive has it: untrusted bytes.
    var path: [UInt8]
    var kind: Kind
    var isEncrypted = false

    /// The path for messages.
    var name: String { "'\(String(decoding: path.prefix(200), as: UTF8.self))\(path.count > 200 ? "…" : "")'" }
}

/// Looks for the one member with a path.
struct MemberSearch {
    /// How many other members an error names.
    private static let mostNamed = 3

    private let path: String
    private let pattern: MemberPattern
    private let lastComponent: ArraySlice<UInt8>
    private var found: ArchiveMember?
    private var count = 0
    /// The first members.
    private var first: [ArchiveMember] = []
    /// The first member whose last component is the right one.
    private var similar: ArchiveMember?

    init(_ path: String) {
        self.path = path
        pattern = MemberPattern(path)
        lastComponent = Self.lastComponent(of: Array(path.utf8))
    }

    private static func lastComponent(of path: [UInt8]) -> ArraySlice<UInt8> {
        path[((path.lastIndex(of: UInt8(ascii: "/")) ?? -1) + 1)...]
    }

    /// Whether this is the member. It must be the only one, and a file.
    mutating func finds(_ member: ArchiveMember) throws(UnpackError) -> Bool {
        count += 1
        guard count <= ContentUnpacker.maxMembers else {
            throw UnpackError("the archive has more than \(ContentUnpacker.maxMembers) members")
        }
        // The path of a directory may end with a slash.
        let name = member.path.last == UInt8(ascii: "/") ? member.path.dropLast() : member.path[...]
        guard pattern.matches(name) else {
            if first.count < Self.mostNamed { first.append(member) }
            if similar == nil, Self.lastComponent(of: Array(name)) == lastComponent { similar = member }
            return false
        }
        if let found {
            throw UnpackError(
                pattern.isWild
                    ? "several members match '\(path)': \(found.name) and \(member.name); write the path of one of them"
                    : "the archive has several members \(member.name), and only the publisher knows which one is right")
        }
        if case .other(let kind) = member.kind {
            throw UnpackError("the member \(member.name) is \(kind), not a file; set 'unpack' to the path of a file")
        }
        guard !member.isEncrypted else {
            throw UnpackError(
                "the member \(member.name) is encrypted, and Freshet has no passwords for archives; unpack it with a "
                    + "program (source.exec)")
        }
        found = member
        return true
    }

    /// The archive has no further members.
    func end() throws(UnpackError) {
        guard found == nil else { return }
        guard let last = first.last else { throw UnpackError("the archive has no members") }
        let missing = "the archive has no member '\(path)'"
        if let similar { throw UnpackError("\(missing); did you mean \(similar.name)?") }
        let others = count - first.count
        let names =
            first.dropLast().map(\.name).joined(separator: ", ")
            + (first.count > 1 ? (others > 0 ? ", " : " and ") : "")
            + last.name + (others > 0 ? " and \(others) more" : "")
        throw UnpackError("\(missing); it has \(names)")
    }
}
