/// The short form of a source for a graph: where its data comes from.
enum OriginText {
    /// The host of a URL, or the source itself: a command or a path. Nil if other pipelines are the only sources.
    ///
    /// - Parameter source: as in `PipelineDescription`: a URL, a command, a path, `pipeline NAME`, or several of them
    ///   with their names, such as `a: https://example.com/x, b: pipeline c`.
    static func text(of source: String) -> String? {
        var parts: [String] = []
        for part in split(source) {
            guard let text = single(part), !parts.contains(text) else { continue }
            parts.append(text)
        }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    /// The sources of a joined source. A comma in a command is not a separator: what follows has no name.
    private static func split(_ source: String) -> [Substring] {
        guard let first = source.firstRange(of: ": "), isName(source[..<first.lowerBound]) else { return [source[...]] }
        var parts: [Substring] = []
        for piece in source.split(separator: ", ") {
            if let colon = piece.firstRange(of: ": "), isName(piece[..<colon.lowerBound]) {
                parts.append(piece[colon.upperBound...])
            } else if parts.isEmpty {
                return [source[...]]
            }
        }
        return parts
    }

    /// Whether a text can be the name of a source: no command and no path begins so, because of its colon.
    private static func isName(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0 != 0x20 && $0 != UInt8(ascii: "/") }
    }

    private static func single(_ source: Substring) -> String? {
        if source.hasPrefix("pipeline ") { return nil }
        guard let scheme = source.firstRange(of: "://"), isName(source[..<scheme.lowerBound]) else {
            return String(source)
        }
        let rest = source[scheme.upperBound...]
        return String(rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" })
    }
}
