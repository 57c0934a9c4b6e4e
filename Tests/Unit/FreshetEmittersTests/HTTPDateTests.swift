import Testing

@testable import FreshetEmitters

@Suite("HTTP dates")
struct HTTPDateTests {
    @Test(
        "a date in each of the three formats is parsed",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("sun, 6 nov 1994 08:49:37 gmt", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Thu, 29 Feb 2024 23:59:59 UTC", 1_709_251_199),
            ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400), ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
            ("Tuesday, 01-Jan-69 00:00:00 GMT", 3_124_224_000),
        ] as [(String, Int64)])
    func forms(_ text: String, _ expected: Int64) {
        #expect(HTTPDate.seconds(text) == expected)
    }

    @Test(
        "a date that does not exist, and a text in another format, are not parsed",
        arguments: [
            "Wed, 31 Feb 2027 12:00:00 GMT", "Mon, 29 Feb 2100 00:00:00 GMT", "Wed, 31 Apr 2024 00:00:00 GMT",
            "Wed, 00 Jan 2024 00:00:00 GMT", "Wed, 01 Jan 2024 24:00:00 GMT", "Wed, 01 Jan 2024 00:60:00 GMT",
            "Wed, 01 Jan 2024 00:00:61 GMT", "Wed, 31 Dec 1969 23:59:59 GMT", "Wed, 01 Jan 2024 00:00:00 CET",
            "Wed, 01 Jan 2024 00:00:00", "Wed, 01 Jan 2024 0:0:0 GMT", "Wed, 01 Foo 2024 00:00:00 GMT",
            "Wed, 01 Jan 12024 00:00:00 GMT", "Wed, +1 Jan 2024 00:00:00 GMT", "Wed, 01 Jan 2024 00:00:00 GMT x",
            "Wed 31 Feb 00:00:00 2027", "Wednesday, 31-Feb-27 00:00:00 GMT", "Wednesday, 01-Jan-27-1 00:00:00 GMT",
            "2024-01-01T00:00:00Z", "0", "-1", "", " ", ",", "Wed, 01 Jan 2024 00:00:00 GMT\0",
            "Wed, 01 Jan 2024 00:00:00 GMT" + String(repeating: " ", count: 64),
        ])
    func none(_ text: String) {
        #expect(HTTPDate.seconds(text) == nil)
    }

    /// A text with a space at its end is not in the usual form, which has a parser of its own.
    @Test("the usual form and others mean the same, whichever bytes are wrong")
    func usualForm() {
        var random = SystemRandomNumberGenerator()
        let letters = Array("JFMASONDjanfebmr0123456789 ,:GMTx".utf8)
        for _ in 0..<20_000 {
            let (day, year) = (Int.random(in: 0...32, using: &random), Int.random(in: 1960...2110, using: &random))
            let month =
                ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
                .randomElement(using: &random) ?? ""
            let clock = (0..<3).map { _ in String(Int.random(in: 100...160, using: &random)).dropFirst() }
            var bytes = Array(
                "Sun, \(day < 10 ? "0" : "")\(day) \(month) \(year) \(clock.joined(separator: ":")) GMT".utf8)
            if Bool.random(using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = letters.randomElement(using: &random) ?? 0
            }
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(HTTPDate.seconds(text) == HTTPDate.seconds(text + " "), "\(text)")
        }
    }
}
