import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The key transform with a template")
struct TemplateFileTests {
    private static let template = "a {{b}}\n"

    private func configuration(
        _ lines: String..., template: String? = TemplateFileTests.template, cache: String = "{file: a}"
    ) -> Configuration {
        var texts = [
            "pipelines/jwks.yaml":
                (["source: {url: https://id.example.com/jwks}", "cache: \(cache)"] + lines).joined(separator: "\n")
        ]
        texts["pipelines/t.mustache"] = template
        return load(texts)
    }

    private func errors(_ line: String, template: String? = TemplateFileTests.template) -> [String] {
        texts(configuration(line, template: template).diagnostics)
    }

    @Test("a relative path is beside the file that names it, and an absolute path is taken as it is")
    func paths() throws {
        let relative = try #require(configuration("transform: {template: t.mustache, escape: json}").pipelines.first)
        #expect(
            relative.template
                == TemplateDefinition(Self.template, in: "/etc/freshet/pipelines/t.mustache", escape: .json))
        #expect(relative.transform == nil)
        let absolute = try #require(
            configuration("transform: {jq: .a, template: /etc/freshet/pipelines/t.mustache, escape: json}")
                .pipelines.first)
        #expect(absolute.template == relative.template && absolute.transform == ".a")
        let dropIn = load([
            "pipelines/jwks.yaml": pipeline("transform: {template: t.mustache, escape: none}"),
            "pipelines/t.mustache": "below",
            "pipelines/jwks.yaml.d/x.yaml": "transform: {template: t.mustache}",
            "pipelines/jwks.yaml.d/t.mustache": "\u{FEFF}above",
        ])
        #expect(dropIn.pipelines.first?.template?.text == "above", "a byte order mark does not belong to the text")
    }

    @Test("a mapping with a program alone is the program")
    func programAlone() {
        #expect(configuration("transform: {jq: .a}").pipelines == configuration("transform: .a").pipelines)
    }

    @Test("the copy is text, or JSON if the template writes JSON, unless it is configured")
    func format() {
        func format(_ escape: String, _ cache: String = "{file: a}") -> ContentFormat? {
            configuration("transform: {template: t.mustache, escape: \(escape)}", cache: cache).pipelines.first?
                .cache.format
        }
        #expect(format("json") == .json && format("shell") == .text && format("none") == .text)
        #expect(format("json", "{file: a, format: text}") == .text)
        #expect(format("none", "{file: a, format: json}") == .json)
    }

    @Test("another text, escape or program is another pipeline with other validators")
    func difference() throws {
        func definition(_ line: String, template: String = TemplateFileTests.template) throws -> PipelineDefinition {
            try #require(configuration(line, template: template).pipelines.first)
        }
        let one = try definition("transform: {template: t.mustache, escape: json}")
        let others = [
            try definition("transform: {template: t.mustache, escape: json}", template: "a {{c}}\n"),
            try definition("transform: {template: t.mustache, escape: html}"),
            try definition("transform: {template: t.mustache, escape: json}", template: "\u{E9}"),
            try definition("transform: {template: t.mustache, escape: json}", template: "e\u{301}"),
            try definition("transform: {jq: .a, template: t.mustache, escape: json}"),
            try definition("transform: .a"),
        ]
        for other in others {
            #expect(!one.makesTheSame(as: other))
            #expect(one.validatorBinding() != other.validatorBinding())
            #expect(one.sharedProduct(with: ParameterValues()) != other.sharedProduct(with: ParameterValues()))
        }
        #expect(others[2] != others[3] && !others[2].makesTheSame(as: others[3]))
        #expect(try one == definition("transform: {escape: json, template: t.mustache}"))
    }

    @Test("an error is at the place that names the template")
    func errors() {
        let line = "transform: {template: t.mustache, escape: json}"
        let place = "jwks.yaml:3:23: error: "
        #expect(
            errors(line, template: nil) == [
                place + "the template does not exist: /etc/freshet/pipelines/t.mustache; "
                    + "a path without '/' at its beginning is beside the file that names it"
            ])
        #expect(
            errors(line, template: "") == [
                place + "the template is empty: /etc/freshet/pipelines/t.mustache; write the text of the copy into it"
            ])
        #expect(errors(line, template: String(repeating: "a", count: 64 << 10)).isEmpty)
        #expect(errors(line, template: String(repeating: "a", count: 64 << 10 + 1)).first?.contains("64 KiB") == true)
    }

    @Test("a template that is not UTF-8 is an error")
    func notUTF8() {
        let files = InMemoryFileSystem([
            "/c/pipelines/a.yaml": .bytes(Array(pipeline("transform: {template: t, escape: none}").utf8)),
            "/c/pipelines/t": .bytes([0x61, 0xFF]),
        ])
        let loaded = ConfigurationLoader(searchPath: SearchPath(directories: ["/c"]), fileSystem: files).load()
        #expect(loaded.diagnostics.map(\.message) == ["the template is not UTF-8: /c/pipelines/t"])
    }

    @Test(
        "what does not fit together is an error",
        arguments: [
            ("transform: {template: t.mustache}", "'template' needs 'escape': how {{name}} is written"),
            ("transform: {jq: .a, escape: json}", "'escape' needs 'template'"),
            ("transform: {template: t.mustache, escape: xml}", "'escape' has to be "),
            ("transform: {}", "'transform' has neither 'jq' nor 'template'"),
            ("transform: {template: a/, escape: json}", "'template' has to be the path of a file, not 'a/'"),
            ("transform: {template: ~/a, escape: json}", "'template' has to be a path, not '~/a'"),
            ("transform: {tempalte: a, escape: json}", "unknown key 'tempalte'"),
        ])
    func combinations(line: String, message: String) {
        let found = configuration(line).diagnostics.filter { $0.severity == .error }
        #expect(found.contains { $0.message.hasPrefix(message) }, "\(found.map(\.message))")
    }

    @Test("a template excludes several files, and needs a program for an answer that is text")
    func exclusions() {
        let several = configuration(
            "transform: {template: t.mustache, escape: none}", cache: "{file: a, files: {b: .b}}")
        #expect(several.diagnostics.map(\.message) == ["'files' and 'transform.template' exclude each other"])
        func text(_ transform: String) -> [String] {
            load([
                "pipelines/jwks.yaml": pipeline(transform, source: "{url: https://a.example/b, format: text}"),
                "pipelines/t.mustache": "x",
            ]).diagnostics.map(\.message)
        }
        #expect(
            text("transform: {template: t.mustache, escape: none}")
                == ["'format: text' needs a jq program before a template"])
        #expect(text("transform: {jq: '{a: .}', template: t.mustache, escape: none}").isEmpty)
    }

    @Test("an error in a template is at its line and column in the template")
    func templateErrors() throws {
        let files = InMemoryFileSystem(texts: [
            "/c/pipelines/a.yaml": pipeline("transform: {template: t.mustache, escape: none}"),
            "/c/pipelines/b.yaml": "source: {file: /b}\ncache: {file: b}\n",
            "/c/pipelines/t.mustache": "one\n  {{#two}}\n",
        ])
        let loader = ConfigurationLoader(searchPath: SearchPath(directories: ["/c"]), fileSystem: files)
        let checked = loader.addingTemplateErrors(
            [TemplateProblem(pipeline: "a", file: "/c/pipelines/t.mustache", line: 2, column: 3, message: "no end")],
            in: loader.load())
        #expect(
            checked.diagnostics.map { $0.text() } == [
                """
                /c/pipelines/t.mustache:2:3: error: no end
                    2 |   {{#two}}
                      |   ^
                """
            ])
        #expect(checked.pipelines.map(\.name) == ["b"] && !checked.isValid)
    }

    @Test("a process that records files before it parses them has the templates beside them")
    func recorded() {
        let path = SearchPath(directories: ["/draft"], mustExist: true)
        let files = InMemoryFileSystem(texts: [
            "/draft/pipelines/a.yaml": pipeline("transform: {template: t.mustache, escape: none}"),
            "/draft/pipelines/t.mustache": "x",
        ])
        let loaded = ConfigurationLoader(searchPath: path, fileSystem: RecordedFileSystem(files, at: path)).load()
        #expect(loaded.pipelines.first?.template?.text == "x")
    }
}
