import FreshetPipelines

/// What is JSON and what is text.
extension DefinitionReader {
    /// What programs are given of a source's answer.
    mutating func format(of source: SourceDefinition?, in section: Section) -> ContentFormat {
        let format: ContentFormat = value("format", in: section, .choice()) ?? .json
        if format == .text, let entry = section["format"], let pages = section["pages"] {
            error(
                entry.location, section.path("format"), "'format: text' and 'pages' exclude each other",
                remedy: "a page is JSON, whose items are listed: leave it out", related: pages.location)
        }
        return format
    }

    /// A format that nothing goes by was meant to do something.
    mutating func checkFormats(of stage: StageDefinition, _ transform: String?, in file: Section) {
        guard case .mapping(let source)? = file["source"]?.value.content, stage.each == nil, transform == nil else {
            return
        }
        if stage.format == .text, stage.pages == nil, let entry = source.first(where: { $0.key == "format" }) {
            warning(
                entry.location, "source.format", "'format: text' is what a program is given, and there is none",
                remedy: "the copy is the answer as it is; leave it out, or write a 'transform'")
        }
    }
}
