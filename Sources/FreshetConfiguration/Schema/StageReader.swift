import FreshetPipelines

/// Reads the source of a pipeline, or of a part of it.
struct StageReader {
    let reader: DefinitionReader

    /// The source, or the sources, of a pipeline; nil if it is missing or invalid.
    func stage(in file: Section) -> StageDefinition? {
        if file["sources"] != nil { return joinedStage(in: file) }
        if let entry = file["combine"] {
            reader.addError(
                entry.location, "combine", "'combine' needs 'sources', but this pipeline has one 'source'",
                remedy: "rename it to 'transform'")
        }
        guard file["source"] != nil else {
            reader.missing(
                file.location, "source", "'source' is missing",
                remedy: "add the source of the data: source: {url: https://…}")
            return nil
        }
        guard let section = reader.section(.source, "source", in: file) else { return nil }
        return stage(section, among: [])
    }

    /// - Parameter names: The names of the items of the fan-outs around it.
    func stage(_ section: Section, among names: [String]) -> StageDefinition? {
        let source = source(section, among: names)
        let pages = PagesReader(reader: reader).pages(of: source, in: section)
        let unpack = UnpackReader(reader: reader).unpack(in: section)
        let format = FormatReader(reader: reader).format(of: source, in: section)
        let transform = reader.value("transform", in: section, .program)
        let each = EachReader(reader: reader).each(in: section, among: names)
        return source.map {
            StageDefinition($0, unpack: unpack, pages: pages, format: format, transform: transform, each: each)
        }
    }

    private func source(_ section: Section, among names: [String]) -> SourceDefinition? {
        let kinds = ["url", "urls", "file", "exec", "pipeline"].compactMap { section[$0] }
        guard let kind = kinds.first else {
            reader.missing(
                section.location, section.keyPath,
                "'\(section.name.rawValue)' has none of 'url', 'file', 'exec' and 'pipeline'",
                remedy: "add the source of the data: url: https://…")
            return nil
        }
        for other in kinds.dropFirst() {
            reader.addError(
                other.location, section.path(other.key), "'\(other.key)' and '\(kind.key)' exclude each other",
                remedy: "keep one; a drop-in removes the other with '\(kind.key): null'", related: kind.location)
        }
        let headers = RequestReader(reader: reader).headers(in: section)
        MirrorsReader(reader: reader).checkOrder(in: section)
        if kind.key != "url", kind.key != "urls" {
            for (key, verb, them) in RequestReader.requestKeys {
                guard let entry = section[key] else { continue }
                reader.addError(
                    entry.location, section.path(key),
                    "'\(key)' \(verb) a 'url', but the source is '\(kind.key)'", remedy: "leave \(them) out")
            }
        }
        switch kind.key {
        case "url":
            if EachReader(reader: reader).isURLFromData(in: section, among: names) {
                if let entry = section["unix-socket"] {
                    reader.addError(
                        entry.location, section.path(entry.key),
                        "'unix-socket' cannot be used with a URL that an item gives",
                        remedy: "leave it out, or write the URL in the file", related: kind.location)
                }
                return reader.value("url", in: section, .line).map { url in
                    let source = RequestReader(reader: reader).request(for: (url, ""), headers, in: section)
                    PlaceholderChecker(reader: reader).checkPlaceholders(of: source, in: section, among: names)
                    return .http(source)
                }
            }
            return reader.value("url", in: section, .url).map { url in
                PlaceholderChecker(reader: reader).checkPlaceholders(of: url.url, kind, in: section, among: names)
                let source = RequestReader(reader: reader).request(for: url, headers, in: section)
                PlaceholderChecker(reader: reader).checkPlaceholders(of: source, in: section, among: names)
                if source.headers.contains(where: { $0.credential != nil }), !source.mayCarryCredentials {
                    reader.addError(
                        kind.value.location, section.path("url"),
                        "a credential would be sent to '\(url.host)' unencrypted",
                        remedy:
                            "begin the URL with https://; http:// is allowed only for this host (localhost, 127.0.0.1)",
                        related: section["credential"]?.location)
                }
                ExposedSecretChecker(reader: reader).warn(about: source, in: section)
                return .http(source)
            }
        case "urls":
            return MirrorsReader(reader: reader).source(in: section, headers).map { .http($0) }
        case "file":
            return reader.value("file", in: section, .absolutePath).map { .file($0) }
        case "pipeline":
            return PredecessorReader(reader: reader).upstream(in: section)
        default:
            if case .sequence(let nodes)? = section["exec"]?.value.content {
                PlaceholderChecker(reader: reader).checkPlaceholders(
                    ofArguments: Array(nodes.dropFirst()), section.path("exec"), among: names)
            }
            return CommandReader(reader: reader).command(in: section).map { .command($0) }
        }
    }
}

extension ValueKind where Value == (url: String, host: String) {
    static let url = ValueKind(name: "a URL such as https://example.com/data.json") {
        scalar throws(ValueError) in
        do throws(URLTemplate.ValidationError) {
            // Without braces there is no placeholder.
            if scalar.text.utf8.contains(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }) {
                _ = try URLTemplate(scalar.text)
            }
        } catch {
            let remedy: String? =
                switch error {
                case .beforePath: "use placeholders in the path and the query; write one pipeline for each host"
                case .unbalanced, .notAName: "a placeholder is a name in braces; write a literal brace as %7B or %7D"
                case .missing, .notASegment, .tooLong: nil
                }
            throw ValueError(error.sentence, remedy: remedy)
        }
        return (scalar.text, try URLText.host(of: scalar.text))
    }
}
