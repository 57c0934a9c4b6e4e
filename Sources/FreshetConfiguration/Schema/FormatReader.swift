import FreshetPipelines

/// The key `format` of a source.
struct FormatReader {
    let reader: DefinitionReader

    /// The format in which jq programs get a source's answer.
    func format(of source: SourceDefinition?, in section: Section) -> ContentFormat {
        let format: ContentFormat = reader.value("format", in: section, .choice()) ?? .json
        if format == .text, let entry = section["format"], let pages = section["pages"] {
            reader.addError(
                entry.location, section.path("format"), "'format: text' and 'pages' exclude each other",
                remedy: "leave 'format' out: a page is JSON with a list of items", related: pages.location)
        }
        return format
    }

    /// Warns if `format` has no effect.
    func checkFormats(
        of stage: StageDefinition, _ transform: String?, _ template: TemplateDefinition?, in file: Section
    ) {
        guard case .mapping(let source)? = file["source"]?.value.content, stage.each == nil, transform == nil else {
            return
        }
        if stage.format == .text, stage.pages == nil, template != nil,
            let entry = source.first(where: { $0.key == "format" })
        {
            reader.addError(
                entry.location, "source.format", "'format: text' needs a jq program before a template",
                remedy: "add transform.jq, which makes JSON from the text", related: file["transform"]?.location)
        } else if stage.format == .text, stage.pages == nil, let entry = source.first(where: { $0.key == "format" }) {
            reader.warning(
                entry.location, "source.format", "'format: text' has no effect without a 'transform'",
                remedy: "leave it out, or add a 'transform': without one, the copy is the unchanged answer")
        }
    }
}
