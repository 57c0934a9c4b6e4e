import FreshetPipelines

/// The key `format` of a source.
extension DefinitionReader {
    /// The format in which jq programs get a source's answer.
    mutating func format(of source: SourceDefinition?, in section: Section) -> ContentFormat {
        let format: ContentFormat = value("format", in: section, .choice()) ?? .json
        if format == .text, let entry = section["format"], let pages = section["pages"] {
            addError(
                entry.location, section.path("format"), "'format: text' and 'pages' exclude each other",
                remedy: "leave 'format' out: a page is JSON with a list of items", related: pages.location)
        }
        return format
    }

    /// Warns if `format` has no effect.
    mutating func checkFormats(of stage: StageDefinition, _ transform: String?, in file: Section) {
        guard case .mapping(let source)? = file["source"]?.value.content, stage.each == nil, transform == nil else {
            return
        }
        if stage.format == .text, stage.pages == nil, let entry = source.first(where: { $0.key == "format" }) {
            warning(
                entry.location, "source.format", "'format: text' has no effect without a 'transform'",
                remedy: "leave it out, or add a 'transform': without one, the copy is the unchanged answer")
        }
    }
}
