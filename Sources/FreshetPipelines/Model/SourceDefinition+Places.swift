extension SourceDefinition {
    /// The places for values: those of a URL; in header fields, a body and a command's arguments whatever looks like one,
    /// since braces mean much there.
    package var places: [URLTemplate.Place] {
        switch self {
        case .http(let source):
            var places = source.placeOfURL.map { [$0] } ?? (try? URLTemplate(source.url))?.places ?? []
            for header in source.headers {
                if case .text(let value) = header.value { places += TextTemplate.places(in: value, as: .header) }
            }
            if case .post(let body, let contentType) = source.method,
                let kind = TextTemplate.Kind(contentType: contentType)
            {
                places += TextTemplate.places(in: body, as: kind)
            }
            return places
        case .command(let arguments):
            return arguments.dropFirst().flatMap { TextTemplate.places(in: $0, as: .argument) }
        case .file, .copy, .joined:
            return []
        }
    }
}

extension TextTemplate {
    /// What looks like a place in a text.
    fileprivate static func places(in text: String, as kind: Kind) -> [URLTemplate.Place] {
        // Without a brace nothing has to be taken apart.
        text.utf8.contains(UInt8(ascii: "{")) ? TextTemplate(text, as: kind).places : []
    }
}
