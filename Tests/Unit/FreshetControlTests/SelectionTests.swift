import Glibc
import TestSupport
import Testing

@testable import FreshetControl

@Suite("Glob patterns")
struct GlobPatternTests {
    @Test(
        "a pattern matches as in a shell",
        arguments: [
            ("*", "", true), ("*", "abc", true), ("a*", "abc", true), ("*c", "abc", true), ("a*c", "abbc", true),
            ("a*c", "abcd", false), ("a?c", "abc", true), ("a?c", "ac", false), ("[a-c]x", "bx", true),
            ("[a-c]x", "dx", false), ("[!a-c]x", "dx", true), ("[^a-c]x", "bx", false), ("[]]", "]", true),
            ("[a-]", "-", true), ("[a", "[a", true), ("[", "[", true), ("[!", "[!", true), ("[z-a]", "m", false),
            (#"\*"#, "*", true), (#"\*"#, "a", false), (#"a\"#, #"a\"#, true), ("**a**", "xxaxx", true),
            ("a*b*c", "aXbYbZc", true), ("a*b*c", "aXbYbZ", false), ("", "", true), ("", "a", false),
            (#"[\]]"#, "]", true), ("*.json", "keys.json", true),
        ])
    func matches(pattern: String, name: String, expected: Bool) {
        #expect(GlobPattern(pattern).matches(name) == expected)
    }

    @Test("a pattern matches the same names as fnmatch(3)", arguments: 0..<4 as Range<UInt64>)
    func likeTheSystem(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let pieces = ["a", "b", "-", "*", "?", "[ab]", "[!a]", "[a-b]", "ab"]
        for _ in 0..<2_000 {
            let pattern = (0..<Int.random(in: 0...6, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }
            .joined()
            let name = (0..<Int.random(in: 0...6, using: &random)).map { _ in
                ["a", "b", "-"].randomElement(using: &random) ?? ""
            }
            .joined()
            #expect(
                GlobPattern(pattern).matches(name) == (fnmatch(pattern, name, 0) == 0), "'\(pattern)' and '\(name)'")
        }
    }

    @Test("a pattern of many stars costs little, where fnmatch(3) would need exponential time")
    func manyStars() {
        let pattern = GlobPattern(String(repeating: "*a", count: 500) + "b")
        #expect(!pattern.matches(String(repeating: "a", count: 1_000)))
    }
}

@Suite("Selections")
struct PipelineSelectionTests {
    @Test("a selection has the named pipelines, the matches of patterns, and events of no pipeline")
    func contains() throws {
        let selection = try PipelineSelection(["jwks", "home*"])
        #expect(["jwks", "homepage", "home", nil].allSatisfy(selection.contains))
        #expect(!selection.contains("jwk"))
        #expect(selection.exact == ["jwks"])
        #expect(try PipelineSelection(nil).contains("any"))
        #expect(try !PipelineSelection([]).contains("any"))
    }

    @Test("a selection with long patterns is rejected, but not with long names")
    func bounds() throws {
        let limit = PipelineSelection.patternBytesLimit
        #expect(throws: Never.self) { try PipelineSelection([String(repeating: "*", count: limit)]) }
        #expect(throws: PipelineSelection.TooManyPatterns.self) {
            try PipelineSelection([String](repeating: "a*", count: limit))
        }
        #expect(throws: Never.self) { try PipelineSelection([String](repeating: "a", count: 10 * limit)) }
    }

    @Test("a selection of signals has the rows of a name and of its first word")
    func signals() {
        let rows = ["file /a b", "file /c", "network", "network 192.0.2.7"]
        #expect(SignalSelection(["file", "network"]).unknownName(among: rows) == nil)
        #expect(SignalSelection(["file /a b", "file /a"]).unknownName(among: rows) == nil)
        #expect(SignalSelection(["netw", "file /d"]).unknownName(among: rows) == "file /d")
        #expect(SignalSelection.suggestion(for: "netwrok", among: rows) == "network")
    }
}

@Suite("Name suggestions")
struct SuggestionCostTests {
    @Test("a very long name, or very many candidates, cost little")
    func bounds() {
        let long = String(repeating: "a", count: NameSuggestion.nameBytesLimit + 1)
        #expect(NameSuggestion.closest(to: long, among: [long + "b"]) == nil)
        var looked = 0
        let candidates = (0..<1_000_000).lazy.map { number -> String in
            looked += 1
            return "pipeline-\(number)"
        }
        #expect(NameSuggestion.closest(to: "pipelime-1", among: candidates) == "pipeline-1")
        #expect(looked < 10_000)
    }
}
