import Testing

@testable import FreshetRender

@Suite struct CharsetTests {
    @Test(
        "the locale decides the characters, and without a locale they are UTF-8",
        arguments: [
            ([:], .unicode), (["LANG": "C.UTF-8"], .unicode), (["LANG": "de_DE.utf8"], .unicode),
            (["LANG": "C"], .ascii), (["LANG": "fr_FR.UTF-8@euro"], .unicode), (["LC_CTYPE": "UTF-8"], .unicode),
            (["LANG": "fr_FR.ISO-8859-15@euro"], .ascii), (["LANG": "."], .ascii),
            (["LANG": "de_DE.UTF-8", "LC_ALL": "POSIX"], .ascii), (["LANG": "C", "LC_CTYPE": "en_US.UTF-8"], .unicode),
            (["LC_ALL": "", "LANG": "de_DE"], .ascii),
        ] as [([String: String], Charset)])
    func choice(environment: [String: String], expected: Charset) {
        #expect(Charset.choose(environment: environment) == expected)
    }

    @Test("other characters become similar ASCII characters, or question marks of the same width")
    func likeness() {
        #expect(Charset.ascii.text("● jwks – 85 µs…") == "* jwks - 85 us...")
        #expect(Charset.ascii.text("Ü世") == "???")
        #expect(Charset.ascii.text("plain\u{1B}[0m") == "plain\u{1B}[0m")
        #expect(Charset.unicode.text("● Ü") == "● Ü")
    }

    @Test("a table in ASCII stays aligned")
    func table() {
        let table = Table(
            columns: [.init("NAME", shrinksTo: 6), .init("X")], rows: [["äöü", "1"], ["a-long-name", "2"]])
        let palette = Palette(isColourful: false, charset: .ascii)
        #expect(table.lines(width: 10, legend: true, palette: palette) == ["NAME     X", "???      1", "a-lon... 2"])
        #expect(table.lines(width: 10, legend: false, palette: Palette(isColourful: false))[1] == "a-long-… 2")
    }

    @Test("a text that is shorter than an ellipsis is cut without one")
    func narrow() {
        #expect(DisplayText.truncated("abcdef", to: 3, ellipsis: "...") == "abc")
        #expect(DisplayText.truncated("abcdef", to: 4, ellipsis: "...") == "a...")
        #expect(DisplayText.truncated("abcdef", to: 1) == "…")
    }
}
