import Testing

@testable import FreshetConfiguration

@Suite("Diagnostics as text")
struct DiagnosticTests {
    private func text(_ line: String, column: Int) -> [String] {
        let excerpt = Diagnostic.Excerpt(line: line.unicodeScalars, column: column)
        return Diagnostic(file: "f", line: 1, column: column, message: "m", excerpt: excerpt).text()
            .split(separator: "\n").dropFirst().map { String($0.dropFirst(8)) }
    }

    @Test("text has the location, the message, the remedy, the line and a caret")
    func whole() throws {
        let diagnostics = load(pipeline: pipeline("refresh:", "  evry: 15min")).diagnostics
        #expect(
            diagnostics.map { $0.text(relativeTo: "/etc/freshet") } == [
                """
                pipelines/jwks.yaml:4:3: error: unknown key 'evry'; did you mean 'every'?
                    4 |   evry: 15min
                      |   ^
                """
            ])
        #expect(diagnostics.first?.text().hasPrefix("/etc/freshet/pipelines/jwks.yaml:4:3: ") == true)
    }

    @Test("an error of a whole file has no line and no caret")
    func wholeFile() {
        let error = Diagnostic(file: "/c/x.yaml", message: "it cannot be read", remedy: "do so")
        #expect(error.text(relativeTo: "/c/") == "x.yaml: error: it cannot be read; do so")
    }

    @Test("before the caret, a tab stays a tab, a wide character has two columns and a combining mark none")
    func widths() {
        #expect(text("\tkey", column: 2) == ["\tkey", "\t^"])
        #expect(text("漢字: x", column: 5) == ["漢字: x", "      ^"])
        #expect(text("e\u{301}: x", column: 5) == ["e\u{301}: x", "   ^"])
        #expect(text("äöü: x", column: 6) == ["äöü: x", "     ^"])
    }

    @Test("a long line is cut on both sides, and the caret stays below the error")
    func longLines() throws {
        let line = String(repeating: "a", count: 300) + "X" + String(repeating: "b", count: 300)
        let lines = text(line, column: 301)
        let shown = try #require(lines.first)
        let caret = try #require(lines.last)
        #expect(shown.hasPrefix("…a"))
        #expect(shown.hasSuffix("b…"))
        #expect(shown.count == Diagnostic.maximumExcerptWidth + 2)
        let mark = try #require(caret.firstIndex(of: "^"))
        #expect(Array(shown)[caret.distance(from: caret.startIndex, to: mark)] == "X")
        let fitting = String(repeating: "a", count: Diagnostic.maximumExcerptWidth)
        #expect(text(fitting, column: 100).first == fitting)
        #expect(text(fitting + "a", column: 1).first == fitting + "…")
    }

    @Test("control characters are replaced")
    func controlCharacters() {
        #expect(text("a\u{1B}[31m\u{202E}b", column: 1).first == "a\u{FFFD}[31m\u{FFFD}b")
        #expect(text("a\u{61C}b\u{200E}c\u{200F}", column: 1).first == "a\u{FFFD}b\u{FFFD}c\u{FFFD}")
        let file = Diagnostic(file: "/etc/a\u{1B}[31m\u{202E}\u{61C}.yaml", message: "no")
        #expect(file.text(relativeTo: "/etc") == "a\\u{1b}[31m\\u{202e}\\u{61c}.yaml: error: no")
        #expect(load(pipeline: pipeline("\"\\e[31m\": 1")).diagnostics.first?.message == "unknown key '\\u{1b}[31m'")
    }

    @Test(
        "header values and the secrets of URLs are not shown",
        arguments: [
            "source: {url: 'https://joe:SECRET@a.example/?k=SECRET', headers: {Authorization: SECRET}, evry: 1}",
            "source: {url: x, headers: {Authorization: SECRET, Range: SECRET}}",
            "source: {url: x, headers: {Authorization: \"SECRET\\n\"}}",
            "source: {url: x, headers: {Authorization: [SECRET]}, zebra: 1}",
            "source: {url: x, headers: {Authorization: SECRET}, y: ]}",
            "source:\n  headers:\n    Authorization: Bearer: SECRET",
            "source:\n  headers:\n    Authorization: \"SECRET\n",
            "source: {url: 'https://a.example/?SECRET' ]",
            "source: {url https://joe:SECRET@a.example/}",
            "source: {headers: &a {A: SECRET}}",
            "source: {file: 'https://joe:SECRET/x@a.example/'}",
            // Below a key of another program, the secret may be deeper.
            "source: {url: x, auth: {type: basic, value: SECRET}}",
            "source: {url: x, auth: [{type: basic, value: SECRET}, [SECRET]]}",
            "credentials: {user: SECRET, all: [{a: {b: SECRET}}], '': SECRET}",
            "source: {url: x, token: {a: SECRET, b: ]}}",
            "source:\n  token: Bearer: SECRET",
            "source: {url: x, token: *SECRET}",
            "source: {url: x, headers: {A: *SECRET}}",
            "source: {url: x, token: !SECRET a}",
            "source:\n  auth:\n    value: Bearer: SECRET",
            "source:\n-   url: x\n  password: SECRET",
            "source:\n  url: x\n [ auth: {type: basic, value: SECRET}",
            // Misspelt keys, and separators of other formats.
            "source: {url: x, auth:: SECRET}",
            "source:\n  Authorization : SECRET",
            "source:\n  url: x\n  \"password \": SECRET\n  zebra: 1",
            "source: {url: x, 'X-Api-Key:': {a: SECRET}}",
            "source:\n  api_key=SECRET",
            "api_key = SECRET",
            "source: {url: x, pasword: SECRET, zebra: 1}",
            "source: {url: x, authorisation: [SECRET]}",
            "source: {url: x, tokne: SECRET}",
            "source:\n  apikeys: 'a SECRET'",
            "refresh: {on: [password=SECRET]}",
            "source:\n  authorizaton\t: SECRET",
            "source:\n  pasword\u{A0}: SECRET",
            "source:\n  url: x\n  password\u{A0}: SECRET\n  zebra: 1",
        ])
    func secrets(text: String) {
        let diagnostics = load(pipeline: text + "\ncache: {file: x}\n").diagnostics
        #expect(!diagnostics.isEmpty)
        for diagnostic in diagnostics {
            #expect(!diagnostic.text().contains("SECRET"))
        }
    }

    @Test(
        "values of keys that are near to other words are shown",
        arguments: ["path", "url", "paths", "token-url", "key"])
    func otherKeys(key: String) {
        let text = "source: {url: x, \(key): shown, zebra: 1}\ncache: {file: x}\n"
        #expect(load(pipeline: text).diagnostics.first?.excerpt?.text.contains("shown") == true)
    }

    @Test("a source may be called like the key of a secret")
    func sourceNames() {
        let text = "sources: {token: {url: https://a.example/x, zebra: shown}}\ncache: {file: x}\n"
        #expect(load(pipeline: text).diagnostics.first?.excerpt?.text.contains("shown") == true)
    }

    @Test("asterisks replace a secret character by character, so that the caret stays in its column")
    func masking() throws {
        let diagnostics = load(
            pipeline: "source: {url: https://a.example/?k=v, headers: {A: abc}, zebra: 1}\ncache: {file: x}\n"
        ).diagnostics
        let excerpt = try #require(diagnostics.first?.excerpt)
        #expect(excerpt.text == "source: {url: https://a.example/?***, headers: {A: ***}, zebra: 1}")
        #expect(excerpt.text.unicodeScalars.dropFirst(excerpt.caret).starts(with: "zebra".unicodeScalars))
    }
}
