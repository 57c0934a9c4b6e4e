import ConfigurationTestSupport
import TestSupport
import Testing

@testable import FreshetConfiguration

@Suite("Files that differ from an earlier one only in their values")
struct ShapeTests {
    private static let texts = [
        "source: {url: 'https://example.com/a.json'}\ncache: {file: a.json}\nrefresh: {every: 1h, on: [start, network]}\n",
        "# comment\nformat: 1\ndescription: One of many feeds\nsource:\n  url: \"https://example.com/a?b=c\"  # why\n"
            + "  headers:\n    Accept: text/plain\n    X-Id: 'it''s'\ncache:\n  file: a\n  mode: \"0640\"\n",
        "source: {exec: [/bin/a, b, 'c d', \"\"]}\ncache: {file: x}\ncheck:\n  jq: |\n    .a |\n    .b\n"
            + "on-change:\n- exec: [/bin/a, 12]\n- reload-unit: a.service\n",
        "# p1\n#\n# made by a program: 'a' {b\n\n# more\nsource: {url: http://a:1/b}\ncache: {file: a}\n",
        "{source: {url: http://a:1/b, transform: .a}, cache: {file: 'a'}}",
        "a: b\r\nc:   d  \r\ne:\r\n  - f\r\n  - g h\r\ni: \"j\r\n  k\" \r\nl:\r\nm: ~\r\n",
        "a:\n  b: 1\n  c:\n  - d: e\n    f: g\n  -\n    - h\n    - i\n",
        "{a: b,\nc: d, e: [f,\ng], h: i}\n",
    ]
    private static let fragments = [
        "a", "zz", "https://b.example.com/c", "0", "null", "~", "", "a b", "a  b", "a: b", "a:b", "a #b", "#", "'",
        "''",
        "\"", "\\n", "\n", "\n---\n", "\n...\n", " ", "\t", "{", "}", "[", "]", ",", "&a", "*a", "!a", "|", ">", "%",
        "@",
        "-", "- ", "?", "? ", ":", ": ", "<<", "\u{E9}", "\u{0}", "\r", String(repeating: "x", count: 600),
        String(repeating: "y", count: 1100), "/", "a/", "a:/", "a.", "a-", "a:1", "---", "a?", "a,b", "é",
    ]

    /// The tree as text, with all locations.
    private static func description(_ node: Node) -> String { "\(node)" }

    private static func source(_ text: some Sequence<UInt8>) -> SourceText {
        SourceText(file: "new.yaml", bytes: Array(text))
    }

    /// Returns whether the shape accepts the text; then the parser has to make the same tree.
    private static func isAccepted(_ source: SourceText, by memory: ReadingMemory) -> Bool {
        guard let root = memory.root(of: source) else { return false }
        let parsed = YAMLReader.read(source)
        #expect(parsed.errors.isEmpty, "\(String(decoding: source.bytes, as: UTF8.self))")
        #expect(
            parsed.root.map(description) == description(root), "\(String(decoding: source.bytes, as: UTF8.self))")
        return true
    }

    @Test("a file is read as the parser reads it, or not at all", arguments: texts)
    func random(text: String) throws {
        let bytes = Array(text.utf8)
        let memory = ReadingMemory()
        let first = YAMLReader.read(SourceText(file: "old.yaml", bytes: bytes), remembering: memory)
        #expect(first.errors.isEmpty && first.root != nil)
        #expect(Self.isAccepted(Self.source(bytes), by: memory))
        var random = SeededGenerator(seed: UInt64(bytes.count))
        var accepted = 0
        for _ in 0..<10_000 {
            var changed = bytes
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let start = Int.random(in: 0...changed.count, using: &random)
                let end = min(changed.count, start + Int.random(in: 0...4, using: &random))
                let fragment = Self.fragments.randomElement(using: &random) ?? ""
                changed.replaceSubrange(start..<end, with: fragment.utf8)
            }
            if Self.isAccepted(Self.source(changed), by: memory) { accepted += 1 }
        }
        #expect(accepted > 0)
    }

    @Test("any fragment may replace any word")
    func words() {
        for text in Self.texts {
            let bytes = Array(text.utf8)
            let memory = ReadingMemory()
            _ = YAMLReader.read(SourceText(file: "old.yaml", bytes: bytes), remembering: memory)
            for start in bytes.indices {
                for length in [1, 3, 6] where start + length <= bytes.count {
                    for fragment in Self.fragments {
                        var changed = bytes
                        changed.replaceSubrange(start..<start + length, with: fragment.utf8)
                        _ = Self.isAccepted(Self.source(changed), by: memory)
                    }
                }
            }
        }
    }

    @Test("another URL, file name and description need no parser, other keys and escapes do")
    func accepted() {
        let memory = ReadingMemory()
        func text(_ url: String, _ file: String, more: String = "") -> SourceText {
            Self.source("source: {url: '\(url)'}\ncache: {file: \(file)}\n\(more)".utf8)
        }
        _ = YAMLReader.read(text("https://a.example.com/a?b=c", "a.json"), remembering: memory)
        #expect(Self.isAccepted(text("http://localhost:80/", "b-c.json"), by: memory))
        #expect(Self.isAccepted(text("", "null"), by: memory))
        #expect(!Self.isAccepted(text("it''s", "a.json"), by: memory))
        #expect(!Self.isAccepted(text("https://a.example.com/é", "a.json"), by: memory))
        #expect(!Self.isAccepted(text("https://a.example.com/", "a.json", more: "format: 1\n"), by: memory))
        #expect(!Self.isAccepted(text("https://a.example.com/", "\"a.json\""), by: memory))
        #expect(!Self.isAccepted(text("https://a.example.com/", "a.json # b"), by: memory))
        #expect(!Self.isAccepted(text(String(repeating: "a", count: 600), "a.json"), by: memory))
    }

    @Test("other comments at the beginning need no parser, more or fewer of them, and comments elsewhere, do")
    func comments() {
        let memory = ReadingMemory()
        func text(_ head: String, _ comment: String = "why") -> SourceText {
            Self.source("\(head)source: {url: 'https://example.com/'}  # \(comment)\n# end\ncache: {file: a}\n".utf8)
        }
        _ = YAMLReader.read(text("# feed 1\n#\n"), remembering: memory)
        #expect(Self.isAccepted(text("# feed 12345: 'a' {\n#%\n"), by: memory))
        #expect(!Self.isAccepted(text("# feed 1\n"), by: memory))
        #expect(!Self.isAccepted(text("# feed 1\n#\n#\n"), by: memory))
        #expect(!Self.isAccepted(text("# feed 1\n\n"), by: memory))
        #expect(!Self.isAccepted(text("# f\u{E9}ed\n#\n"), by: memory))
        #expect(!Self.isAccepted(text("# feed 1\n#\n", "because"), by: memory))
        #expect(memory.root(of: text("# feed\t1\n#\n")) == nil)
        #expect(memory.root(of: Self.source("# feed 1\n# without an end".utf8)) == nil)
    }

    @Test("files with errors and with other characters have no shape")
    func notKept() {
        for text in ["a: b\na: c\n", "a: \u{E9}\n", "a: \"\\n\"\n", "a: &b c\n"] {
            let memory = ReadingMemory()
            let source = Self.source(text.utf8)
            _ = YAMLReader.read(source, remembering: memory)
            #expect(memory.root(of: source) == nil, "\(text)")
        }
    }

    @Test("a load of similar files gives the definitions and the errors that each file gives alone")
    func load() {
        var texts: [String: String] = [:]
        func text(_ url: String, _ file: String, _ every: String = "1h", on: String = "start", more: String = "")
            -> String
        {
            "description: feed of \(file)\nsource:\n  url: '\(url)'\n  headers: {Authorization: abc, X-A: b}\n"
                + "cache: {file: \(file)}\nrefresh: {every: \(every), on: [\(on)], after: [p1]}\n\(more)"
        }
        for index in 0..<40 {
            texts["p\(index)"] = text("https://h\(index).example.com/\(index)", "f\(index).json")
        }
        texts["p3"] = text("ftp://example.com/", "p3")
        texts["p5"] = text("https://example.com/?token=abc", "p5")
        texts["p7"] = text("https://user:secret@example.com/", "p7")
        texts["p9"] = text("https://example.com/", "f8.json")
        texts["p11"] = text("https://example.com/", "p11", "1parsec")
        texts["p13"] = text("https://example.com/", "p13", on: "start, start")
        texts["p15"] = text("https://example.com/", "null")
        texts["p17"] = text("https://example.com/", "p17", more: "check: {jq: .a, format: text}\n")
        texts["p19"] = text("https://example.com/{a}", "p19")
        texts["p21"] = text("http://example.com/a", "p21")
        texts["p23"] = text("https://example.com/", "p23", "2h")
        texts["p25"] = text("https://example.com/", "p25", "1h", on: "reboot")
        let files = Dictionary(
            uniqueKeysWithValues: texts.map { ("/etc/freshet/pipelines/\($0.key).yaml", $0.value) })
        let loader = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/etc/freshet"]), fileSystem: InMemoryFileSystem(texts: files))
        let load = ConfigurationLoad(with: loader)
        let together = loader.load()
        let alone = load.configuration(of: (0..<load.count).flatMap { load.pipelines(in: $0..<$0 + 1) })
        #expect(together.pipelines == alone.pipelines)
        #expect(together.diagnostics == alone.diagnostics)
        #expect(together.invalid == alone.invalid)
        #expect(together.diagnostics.count > 8)
        #expect(!together.diagnostics.contains { "\($0)".contains("abc") || "\($0)".contains("secret@") })
    }

    @Test("an unreadable drop-in hides no missing key of the next pipeline")
    func incomplete() {
        let refreshes = [
            "{dbus: {path: /a}}": "refresh.dbus",
            "{needs-network: {status: 204}}": "refresh.needs-network",
        ]
        for (refresh, keyPath) in refreshes {
            func text(_ name: String) -> String {
                "source: {url: 'https://example.com/\(name)'}\ncache: {file: \(name)}\nrefresh: \(refresh)\n"
            }
            let files = [
                "/etc/freshet/pipelines/p1.yaml": text("p1"), "/etc/freshet/pipelines/p1.yaml.d/a.yaml": "a: [\n",
                "/etc/freshet/pipelines/p2.yaml": text("p2"),
            ]
            let configuration = ConfigurationLoader(
                searchPath: SearchPath(directories: ["/etc/freshet"]), fileSystem: InMemoryFileSystem(texts: files)
            ).load()
            #expect(configuration.invalid.keys.sorted() == ["p1", "p2"])
            #expect(configuration.diagnostics.contains { $0.file.hasSuffix("p2.yaml") && $0.keyPath == keyPath })
        }
    }
}
