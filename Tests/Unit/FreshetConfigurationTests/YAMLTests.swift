import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Strict YAML")
struct YAMLTests {
    private func messages(_ text: String) -> [String] { errors(text) }

    @Test(
        "unsupported YAML is an error at its location, with the remedy",
        arguments: [
            (
                "description: &a x",
                "3:14: error: anchors and aliases ('&', '*') are not supported; write the value itself"
            ),
            (
                "description: *a",
                "3:14: error: anchors and aliases ('&', '*') are not supported; write the value "
                    + "itself"
            ),
            (
                "description: !!str x",
                "3:14: error: tags ('!') are not supported; leave it out; text that begins with '!' needs quotes"
            ),
            (
                "check: {<<: {jq: .}}",
                "3:9: error: merge keys ('<<') are not supported; write the keys out, or put them into a drop-in, "
                    + "NAME.yaml.d/*.yaml"
            ),
            (
                "---\ncheck: {}",
                "3:1: error: a second document begins here, but a file has only one; move it to another file, or "
                    + "remove the '---'"
            ),
            ("cache: {file: y}", "3:1: error: the key 'cache' appears twice; keep one of them (see jwks.yaml:2:1)"),
            (
                "check:\n  jq: .\n  jq: .x",
                "5:3: error: the key 'jq' appears twice; keep one of them (see jwks.yaml:4:3)"
            ),
            ("? [a]\n: b", "3:3: error: a key has to be a word, not a list or a mapping"),
            (
                "description: a: b",
                "3:15: error: this is not YAML: mapping values are not allowed in this context; check the indentation, "
                    + "or quote the text if the ':' belongs to it"
            ),
            (
                "refresh:\n\tevery: 1min",
                "4:1: error: this is not YAML: found character that cannot start any token while scanning for the next "
                    + "token; indent with spaces, not with tabs"
            ),
            (
                "refresh: {every: 1min",
                "4:1: error: this is not YAML: did not find expected ',' or '}' while parsing a flow mapping that "
                    + "begins in line 3; close the bracket"
            ),
            (
                "description: \u{1}",
                "3:14: error: this is not YAML: control characters are not allowed; inside double quotes, write it as "
                    + "an escape"
            ),
        ])
    func rejected(line: String, expected: String) {
        #expect(messages(pipeline(line)) == ["jwks.yaml:\(expected)"])
    }

    @Test("a directive is an error")
    func directive() {
        #expect(
            messages("%YAML 1.1\n---\n" + pipeline()) == [
                "jwks.yaml:1:1: error: YAML directives ('%') are not supported; leave them out"
            ])
    }

    @Test("invalid UTF-8 is an error at the first invalid byte")
    func encoding() throws {
        let bytes = Array("description: äö\ncheck: ä".utf8) + [0xFF, 0x0A]
        let files = InMemoryFileSystem(["/c/pipelines/x.yaml": .bytes(bytes)])
        let configuration = ConfigurationLoader(searchPath: SearchPath(directories: ["/c"]), fileSystem: files).load()
        let error = try #require(configuration.diagnostics.first)
        #expect(configuration.diagnostics.count == 1)
        #expect(error.message == "the byte 0xFF is not UTF-8")
        #expect(error.line == 2)
        #expect(error.column == 9)
    }

    @Test("more than 30 combining characters in a row are an error, literal or escaped")
    func combiningCharacters() {
        let remedy = "more than 30 combining characters in a row; remove them; no language needs so many"
        let marks = String(repeating: "\u{301}", count: 30)
        let escaped = String(repeating: #"\u0301"#, count: 31)
        #expect(messages(pipeline("description: e\(marks)")) == [])
        #expect(messages(pipeline("description: e\(marks)\u{301}")) == ["jwks.yaml:3:14: error: there are \(remedy)"])
        #expect(messages(pipeline("\"description\(escaped)\": a")) == ["jwks.yaml:3:1: error: there are \(remedy)"])
    }

    @Test("a byte order mark, a document start and Windows line breaks are accepted")
    func harmless() {
        let text = "\u{FEFF}---\r\nsource: {file: /x}\r\ncache: {file: x}\r\nevry: 1\r\n"
        #expect(messages(text) == ["jwks.yaml:4:1: error: unknown key 'evry'; did you mean 'every' below 'refresh'?"])
    }

    @Test(
        "a line break that only YAML recognizes is an error, since line numbers would be wrong",
        arguments: ["\u{85}", "\u{2028}"])
    func strangeBreaks(character: String) {
        #expect(load(pipeline: pipeline("description: 'a\(character)b'")).diagnostics.map(\.line) == [3])
    }

    @Test("plain scalars such as on and no are text where text is expected")
    func plainWords() {
        let configuration = load(pipeline: pipeline("description: no", "refresh: {on: start}"))
        #expect(configuration.pipelines.first?.description == "no")
        #expect(configuration.policy?.on == [.start])
    }

    @Test("a mapping has at most 1,000 keys")
    func keyLimit() {
        func read(_ count: Int) -> [Diagnostic] {
            let text = (0..<count).map { "k\($0): 1\n" }.joined()
            return YAMLReader.read(SourceText(file: "x", bytes: Array(text.utf8))).errors
        }
        #expect(read(YAMLReader.maximumKeys).isEmpty)
        #expect(read(YAMLReader.maximumKeys + 1).map(\.message) == ["there are more than 1000 keys in one mapping"])
    }

    @Test("values nest at most 32 levels deep, and a file has at most 20,000 values")
    func limits() {
        func nested(_ depth: Int) -> (Node?, [Diagnostic]) {
            let text = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
            let result = YAMLReader.read(SourceText(file: "x", bytes: Array(text.utf8)))
            return (result.root, result.errors)
        }
        #expect(nested(YAMLReader.maximumDepth + 1).0 != nil)
        #expect(nested(YAMLReader.maximumDepth + 2).0 == nil)
        #expect(nested(YAMLReader.maximumDepth + 2).1.map(\.message) == ["values nest deeper than 32 levels"])

        func long(_ count: Int) -> [Diagnostic] {
            let text = "[" + String(repeating: "a,", count: count - 1) + "]"
            return YAMLReader.read(SourceText(file: "x", bytes: Array(text.utf8))).errors
        }
        #expect(long(YAMLReader.maximumNodes).isEmpty)
        #expect(long(YAMLReader.maximumNodes + 1).map(\.message) == ["the file has more than 20000 values"])
    }

    @Test("a file of 1 MiB is read, and a larger one is an error")
    func size() {
        func load(_ size: Int) -> Configuration {
            let text = pipeline("#")
            return FreshetConfigurationTests.load(
                pipeline: text + String(repeating: "#", count: size - text.utf8.count))
        }
        #expect(load(SourceText.maximumSize).isValid)
        #expect(load(SourceText.maximumSize + 1).diagnostics.map(\.message) == ["the file is larger than 1024 KiB"])
    }

    @Test("an empty file is reported with its missing keys")
    func empty() {
        #expect(load(pipeline: "").diagnostics.map(\.message) == ["'cache' is missing", "'source' is missing"])
        #expect(load(pipeline: "# nothing\n").diagnostics.count == 2)
        #expect(
            load(pipeline: "[a]").diagnostics.map(\.message) == ["the file has to contain keys with values, not a list"]
        )
    }
}
