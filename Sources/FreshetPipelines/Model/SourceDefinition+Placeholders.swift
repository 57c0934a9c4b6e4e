extension SourceDefinition {
    /// The placeholders: those of a URL; in header fields, a body and a command's arguments everything that looks like
    /// a placeholder, since braces have other meanings there.
    package var placeholders: [URLTemplate.Placeholder] {
        switch self {
        case .http(let source):
            var placeholders =
                source.urlPlaceholder.map { [$0] }
                ?? source.alternatives.flatMap {
                    $0.hasConfiguredURL ? [] : (try? URLTemplate($0.url))?.placeholders ?? []
                }
            for header in source.headers {
                guard case .text(let value) = header.value else { continue }
                placeholders += TextTemplate.placeholders(in: value, as: .header)
            }
            if case .post(let body, let contentType) = source.method,
                let kind = TextTemplate.Kind(contentType: contentType)
            {
                placeholders += TextTemplate.placeholders(in: body, as: kind)
            }
            return placeholders
        case .command(let arguments):
            return arguments.dropFirst().flatMap { TextTemplate.placeholders(in: $0, as: .argument) }
        case .file, .copy, .joined:
            return []
        }
    }
}

extension HTTPSource {
    /// Whether the URL is the same for all values of parameters and items, so that messages may show its path.
    var hasConfiguredURL: Bool { !url.utf8.contains(UInt8(ascii: "{")) }
}

extension SourceDefinition {
    /// Whether requests have a URL that stands in the configuration.
    var hasConfiguredURL: Bool {
        if case .http(let source) = self { source.hasConfiguredURL } else { false }
    }
}

extension CheckRules {
    /// Whether the URLs of the files beside the content stand in the configuration.
    var haveConfiguredURLs: Bool {
        var files = [minisign?.signature].compactMap(\.self)
        if case .list(let list, _) = sha256 { files.append(list) }
        return files.allSatisfy(\.hasConfiguredURL)
    }
}

extension TextTemplate {
    /// Everything in a text that looks like a placeholder.
    fileprivate static func placeholders(in text: String, as kind: Kind) -> [URLTemplate.Placeholder] {
        // A text without a brace needs no parsing.
        text.utf8.contains(UInt8(ascii: "{")) ? TextTemplate(text, as: kind).placeholders : []
    }
}
