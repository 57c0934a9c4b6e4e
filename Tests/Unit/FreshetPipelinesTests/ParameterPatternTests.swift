import Testing

@testable import FreshetPipelines

@Suite("Patterns of parameters")
struct ParameterPatternTests {
    @Test(
        "the pattern must match the whole value, wherever it has anchors",
        arguments: [
            ("^[\\w ]*$", "jazz and blues", true), ("^[\\w ]*$", "", true), ("^[\\w ]*$", "a&b", false),
            ("^[\\w ]*$", "back\\slash", false), ("[\\w ]*", "a&b", false), ("[a-z]{2}", "de", true),
            ("[a-z]{2}", "deu", false), ("[a-z]{2}", "xde", false), ("a|ab", "ab", true), ("a|b", "ab", false),
            ("a\\)|b", "a", false), ("(a|ab)(c|bcd)(d*)", "abcd", true), ("", "", true), ("", "x", false),
            ("\\d+", "42", true), ("\\d+", "4 2", false), ("[\\d,]+", "4,2", true), ("\\S+\\s\\S+", "a b", true),
            ("[^\\s/]+", "a b", false), ("[^\\s/]+", "ab", true), (".*", "anything / at all?", true),
            ("x{2,3}", "xxxx", false), ("x{2,}", "xxxx", true), ("(ab){2}", "abab", true), ("\\{\\}", "{}", true),
            ("a\\.b", "a.b", true), ("a\\.b", "axb", false), ("\\W", "%", true), ("\\D\\D", "a1", false),
        ])
    func whole(pattern: String, value: String, matches: Bool) throws {
        #expect(try ParameterPattern(pattern).matches(value) == matches)
    }

    @Test(
        "in brackets a backslash escapes a punctuation character, as outside of them",
        arguments: [
            ("[\\w\\-. ]+", "a-b. c", true), ("[\\]]", "]", true), ("[]a]+", "]a", true), ("[\\[\\]]+", "[]", true),
            ("[\\^]", "^", true), ("[\\^\\-]+", "^-", true), ("[-^]+", "-^", true), ("[a^]+", "a^", true),
            ("[^^]", "^", false), ("[^\\]]", "]", false), ("[^\\]]", "x", true), ("[a\\-z]", "b", false),
            ("[a\\-z]", "-", true), ("[a-]+", "a-", true), ("[\\\\]", "\\", true), ("[\\w]", "\\", false),
            ("[[:digit:]_-]+", "4_-", true), ("[\\[^]+", "[^", true), ("[^\\[^-]", "-", false), ("[[]", "[", true),
        ])
    func brackets(pattern: String, value: String, matches: Bool) throws {
        #expect(try ParameterPattern(pattern).matches(value) == matches)
    }

    @Test(
        "values are Unicode characters, whatever the locale of the process is",
        arguments: [
            ("\\w+", "Käse", true), ("\\w+", "日本語", true), (".", "ä", true), (".", "😀", true), ("..", "ä", false),
            ("[äöü]", "ö", true), ("[äöü]", "Ã", false), ("[a-zäöü]+", "schön", true), ("[^a]", "é", true),
            ("[[:upper:]]", "Ä", true),
            ("[[:upper:]]", "ä", false), ("\\s", "\u{3000}", true), ("[a-z]", "ä", false), ("[a-z]", "B", false),
        ])
    func unicode(pattern: String, value: String, matches: Bool) throws {
        #expect(try ParameterPattern(pattern).matches(value) == matches)
    }

    @Test(
        "an invalid pattern is refused with the reason",
        arguments: [
            ("[a", "has a '[' without its ']'"), ("(a", "is not a regular expression: unmatched ( or \\("),
            ("a)", "has a ')' without its '('"), ("a\\", "ends in a backslash"), ("[a\\", "ends in a backslash"),
            ("(a)\\1", "has '\\1', which is not supported"), ("\\bx", "has '\\b', which is not supported"),
            ("(?:a)", "has '(?'"), ("*a", "is not a regular expression: invalid preceding regular expression"),
            ("a{2", "has a '{' without its '}'"), ("a{x}", "has braces that are not a repetition such as {2} or {1,8}"),
            ("[z-a]", "is not a regular expression: invalid range end"),
            ("[!-^]", "has a range that begins or ends with a bracket, '^', '-' or a backslash"),
            ("[а-я]", "has a range of characters that are not ASCII"),
            ("[[:nonsense:]]", "is not a regular expression: invalid character class name"),
            ("[[:alpha", "has a '[:' without its ':]'"), ("[\\W]", "has '\\W', which is not supported"),
            ("((a{99}){99}){99}", "repeats too much"),
            ("a{10001}", "has braces that are not a repetition such as {2} or {1,8}"),
            ("(a{101}|b{0,9}){100}", "repeats too much"),
        ])
    func errors(pattern: String, message: String) {
        #expect(Self.error(pattern) == message)
    }

    private static func error(_ pattern: String) -> String? {
        do throws(ParameterPattern.ValidationError) {
            _ = try ParameterPattern(pattern)
            return nil
        } catch {
            return error.message
        }
    }

    @Test("a pattern has at most 1,024 bytes, and 10,000 states")
    func limits() {
        #expect(Self.error(String(repeating: "a", count: 1024)) == nil)
        #expect(Self.error(String(repeating: "a", count: 1025)) == "is longer than 1024 bytes")
        #expect(Self.error("(a{100}){100}") == nil)
        #expect(Self.error("(a{100}){101}") == "repeats too much")
    }
}
