extension SourceDefinition {
    /// The places for values: those of a URL; in a command's arguments whatever looks like one, since braces mean much
    /// to programs.
    package var places: [URLTemplate.Place] {
        switch self {
        case .http(let source): (try? URLTemplate(source.url))?.places ?? []
        case .command(let arguments): arguments.dropFirst().flatMap(Self.places)
        case .file, .copy, .joined: []
        }
    }

    private static func places(in argument: String) -> [URLTemplate.Place] {
        argument.indices.filter { argument[$0] == "{" }.compactMap { brace in
            let text = argument[argument.index(after: brace)...]
            return text.firstIndex(of: "}").flatMap { URLTemplate.Place(named: text[..<$0]) }
        }
    }
}
