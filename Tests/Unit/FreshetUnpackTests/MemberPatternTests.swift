import Testing

@testable import FreshetUnpack

@Suite("The path of a member")
struct MemberPatternTests {
    @Test(
        "a path matches itself only",
        arguments: [
            ("a/b.txt", "a/b.txt", true), ("a/b.txt", "./a/b.txt", false), ("a/b.txt", "a/b.txt2", false),
            ("a/b.txt", "a/b.tx", false), ("../x", "../x", true), ("/x", "/x", true), ("a", "", false),
        ])
    func exact(_ pattern: String, _ path: String, _ matches: Bool) {
        #expect(MemberPattern(pattern).matches(path.utf8) == matches)
    }

    @Test(
        "a star stands for any part of one component",
        arguments: [
            ("GeoLite2-Country_*/GeoLite2-Country.mmdb", "GeoLite2-Country_20260714/GeoLite2-Country.mmdb", true),
            ("GeoLite2-Country_*/GeoLite2-Country.mmdb", "GeoLite2-Country_/GeoLite2-Country.mmdb", true),
            ("GeoLite2-Country_*/GeoLite2-Country.mmdb", "GeoLite2-Country_2/x/GeoLite2-Country.mmdb", false),
            ("*/a", "x/a", true), ("*/a", "/a", true), ("*/a", "x/y/a", false), ("*", "a/b", false), ("*", "ab", true),
            ("*.txt", "a.txt.txt", true), ("a*b*c", "aXbYbZc", true), ("a*b*c", "aXc", false), ("a*a", "a", false),
            ("a*b/c*d", "a1b/c2d", true), ("a*b/c*d", "a1/b/c2d", false), ("**", "abc", true),
            ("*b*/c", "abbb/c", true),
            ("a*", "a", true), ("*/*", "a/b", true), ("*/*", "a", false), ("*-*-end", "1-2-3-end", true),
        ])
    func star(_ pattern: String, _ path: String, _ matches: Bool) {
        #expect(MemberPattern(pattern).matches(path.utf8) == matches)
    }
}
