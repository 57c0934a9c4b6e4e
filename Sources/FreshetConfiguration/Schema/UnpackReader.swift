import FreshetPipelines

/// The key `unpack` of a source.
struct UnpackReader {
    let reader: DefinitionReader

    func unpack(in section: Section) -> UnpackRule? {
        if let entry = section["unpack"], let pages = section["pages"] {
            reader.addError(
                entry.location, section.path("unpack"), "'unpack' and 'pages' exclude each other",
                remedy: "leave 'unpack' out: a page is JSON with a list of items", related: pages.location)
        }
        return reader.value("unpack", in: section, .unpackRule)
    }
}

extension ValueKind where Value == UnpackRule {
    fileprivate static let unpackRule = ValueKind(name: "a format such as gzip or tar:PATH") {
        scalar throws(ValueError) in
        let text = scalar.text
        if let compression = UnpackRule.Compression(rawValue: text) { return .compressed(compression) }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let archive = UnpackRule.Archive(rawValue: String(parts[0])) else {
            throw ValueError(
                "has to be gzip, zstd, xz, bzip2, tar:PATH or zip:PATH, not \(text.quoted)", remedy: remedy(for: text))
        }
        guard parts.count == 2, !parts[1].isEmpty else {
            throw ValueError(
                "needs the path of a file in the archive",
                remedy: "write \(archive.rawValue):PATH; tar --list or unzip -l shows the paths")
        }
        let path = String(parts[1])
        guard !path.hasSuffix("/") else { throw ValueError("is a directory", remedy: "write the path of a file") }
        guard !path.unicodeScalars.contains(where: \.actsOnTerminal) else {
            throw ValueError("has to be a path without control characters")
        }
        guard path.utf8.count <= UnpackRule.maximumPathBytes else {
            throw ValueError("has a path of more than \(UnpackRule.maximumPathBytes) bytes")
        }
        return .member(of: archive, path: path)
    }

    /// A remedy for another name of a format.
    private static func remedy(for text: String) -> String? {
        switch text.lowercased() {
        case "gz", "gunzip", "x-gzip": "write gzip"
        case "zst": "write zstd"
        case "bz2": "write bzip2"
        case "lzma": "xz and lzma are different formats; only xz can be unpacked"
        case "tgz", "tar.gz", "tar.xz", "tar.zst", "tar.bz2": "write tar:PATH, which also unpacks a compressed archive"
        default: nil
        }
    }
}
