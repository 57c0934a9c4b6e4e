import ConfigurationTestSupport

@testable import FreshetConfiguration

extension FuzzTarget {
    /// The YAML reader and the reader of the keys. A drop-in follows after a line with `%%`.
    static let yaml = FuzzTarget(
        "yaml",
        shapes: [
            CostShape("keys", unit: "a: b\n"),
            CostShape("a list", before: "refresh:\n  on:\n", unit: "    - a\n"),
            CostShape("a list on one line", before: "a: [", unit: "b,", after: "c]"),
            CostShape("nesting", before: "a: ", unit: "["),
            CostShape("a long text", before: "description: ", unit: "a"),
            CostShape("quoted text", before: "description: \"", unit: "\\u00e4", after: "\""),
            CostShape("comments", unit: "# a\n"), CostShape("empty lines", unit: "\r"),
            CostShape("tags", before: "a: ", unit: "!a "),
            CostShape("list of anchors", before: "a:\n", unit: "- &a b\n"),
            CostShape("headers", before: "source:\n  url: https://a.example/\n  headers:\n    a: b\n", unit: "    #\n"),
            CostShape("a URL", before: "source: {url: 'https://a.example/", unit: "a/", after: "'}"),
            CostShape("placeholders", before: "source: {url: 'https://a.example/", unit: "{a}/", after: "'}"),
            CostShape(
                "braces in a header", before: "source: {url: 'https://a.example/', headers: {a: '", unit: "{",
                after: "'}}"),
            CostShape(
                "braces in a body", before: "source: {url: 'https://a.example/', body: '", unit: "{", after: "'}"),
            CostShape(
                "combining characters in a key", before: "source", unit: "\u{301}\u{323}", after: ": a", upTo: 16_384),
            CostShape(
                "combining characters in a value", before: "refresh: {every: 1s", unit: "\u{301}\u{323}", after: "}",
                upTo: 16_384),
        ],
        read: { input in keep(configuration(sections(of: input))) },
        check: { input throws(FuzzViolation) in
            let sections = sections(of: input)
            let configuration = configuration(sections)
            try hold(
                "a file is a pipeline or has errors", configuration.pipelines.count + configuration.invalid.count == 1)
            try hold(
                "errors and pipelines exclude each other", configuration.pipelines.isEmpty != configuration.isValid)
            for diagnostic in configuration.diagnostics {
                let bytes = diagnostic.file == dropIn ? sections.dropFirst().first ?? [] : sections[0]
                guard let line = diagnostic.line, let column = diagnostic.column else { continue }
                let text = SourceText(file: diagnostic.file, bytes: bytes).line(line)
                try hold("an error names a line of its file", text != nil)
                try hold("an error names a column of its line", (1...((text?.count ?? 0) + 1)).contains(column))
                let rendered = diagnostic.text().split(separator: "\n", omittingEmptySubsequences: false)
                try hold("an error has one line, or three", rendered.count == (diagnostic.excerpt == nil ? 1 : 3))
                if let excerpt = diagnostic.excerpt {
                    try hold(
                        "the mark is below the line", (0...excerpt.text.unicodeScalars.count).contains(excerpt.caret))
                }
            }
            try hold(
                "there are not too many errors",
                configuration.diagnostics.count <= ConfigurationLoader.maximumDiagnostics + 2)
        })

    private static let file = "/c/pipelines/x.yaml"
    private static let dropIn = "/c/pipelines/x.yaml.d/y.yaml"

    private static func configuration(_ sections: [[UInt8]]) -> Configuration {
        var files: [String: InMemoryFileSystem.Entry] = [file: .bytes(sections[0])]
        if sections.count > 1 { files[dropIn] = .bytes(sections[1]) }
        return ConfigurationLoader(
            searchPath: SearchPath(directories: ["/c"]), fileSystem: InMemoryFileSystem(files)
        ).load()
    }
}
