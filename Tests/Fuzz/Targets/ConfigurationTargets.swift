import ConfigurationTestSupport
import FreshetPipelines

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
            try holdRules(
                of: configuration.diagnostics,
                in: [file: sections[0], dropIn: sections.dropFirst().first ?? []])
        })

    /// The files of a hook of several pipelines, beside two pipelines without errors. A drop-in follows after a line
    /// with `%%`.
    static let hook = FuzzTarget(
        "hook",
        shapes: [
            CostShape("a list of pipelines", before: "on-change-of: [", unit: "b,", after: "c]\nexec: [/x]\n"),
            CostShape("a program with arguments", before: "on-change-of: a\nexec: [/x", unit: ",y", after: "]"),
            CostShape(
                "combining characters in a name", before: "exec: [/x]\non-change-of: [a", unit: "\u{301}\u{323}",
                after: "]", upTo: 16_384),
            CostShape("keys", before: "on-change-of: a\nexec: [/x]\n", unit: "quiet: 1s\n"),
        ],
        read: { input in keep(hookConfiguration(sections(of: input))) },
        check: { input throws(FuzzViolation) in
            let sections = sections(of: input)
            let configuration = hookConfiguration(sections)
            try hold(
                "the pipelines have no errors", configuration.pipelines.count == 2 && configuration.invalid.isEmpty)
            try hold(
                "a file is a hook or has errors", configuration.hooks.count + configuration.invalidHooks.count == 1)
            try hold("errors and hooks exclude each other", configuration.hooks.isEmpty != configuration.isValid)
            for hook in configuration.hooks {
                try hold(
                    "a hook names pipelines", !hook.pipelines.isEmpty && Set(hook.pipelines).isSubset(of: ["a", "b"]))
                try hold("a hook names no pipeline twice", Set(hook.pipelines).count == hook.pipelines.count)
                try hold(
                    "a hook either runs a command or reloads a unit",
                    hook.action.command.isEmpty != (hook.action.unit == nil))
                try hold("a burst has its end", .zero <= hook.quiet && hook.quiet <= hook.atMost)
            }
            try holdRules(
                of: configuration.diagnostics,
                in: [hookFile: sections[0], hookDropIn: sections.dropFirst().first ?? []])
        })

    /// Errors have a position in their file, and a text of at most three lines.
    private static func holdRules(of diagnostics: [Diagnostic], in files: [String: [UInt8]]) throws(FuzzViolation) {
        for diagnostic in diagnostics {
            guard let line = diagnostic.line, let column = diagnostic.column else { continue }
            let text = SourceText(file: diagnostic.file, bytes: files[diagnostic.file] ?? []).line(line)
            try hold("an error names a line of its file", text != nil)
            try hold("an error names a column of its line", (1...((text?.count ?? 0) + 1)).contains(column))
            let rendered = diagnostic.text().split(separator: "\n", omittingEmptySubsequences: false)
            try hold("an error has one line, or three", rendered.count == (diagnostic.excerpt == nil ? 1 : 3))
            if let excerpt = diagnostic.excerpt {
                try hold("the mark is below the line", (0...excerpt.text.unicodeScalars.count).contains(excerpt.caret))
            }
        }
        try hold("there are not too many errors", diagnostics.count <= ConfigurationLoader.maximumDiagnostics + 2)
    }

    private static let file = "/c/pipelines/x.yaml"
    private static let dropIn = "/c/pipelines/x.yaml.d/y.yaml"

    private static func configuration(_ sections: [[UInt8]]) -> Configuration {
        var files: [String: InMemoryFileSystem.Entry] = [file: .bytes(sections[0])]
        if sections.count > 1 { files[dropIn] = .bytes(sections[1]) }
        return ConfigurationLoader(
            searchPath: SearchPath(directories: ["/c"]), fileSystem: InMemoryFileSystem(files)
        ).load()
    }

    private static let hookFile = "/c/hooks/x.yaml"
    private static let hookDropIn = "/c/hooks/x.yaml.d/y.yaml"

    private static func hookConfiguration(_ sections: [[UInt8]]) -> Configuration {
        var files: [String: InMemoryFileSystem.Entry] = [hookFile: .bytes(sections[0])]
        if sections.count > 1 { files[hookDropIn] = .bytes(sections[1]) }
        for name in ["a", "b"] {
            files["/c/pipelines/\(name).yaml"] = .bytes(Array("source: {file: /x}\ncache: {file: \(name)}\n".utf8))
        }
        return ConfigurationLoader(
            searchPath: SearchPath(directories: ["/c"]), fileSystem: InMemoryFileSystem(files)
        ).load()
    }
}
