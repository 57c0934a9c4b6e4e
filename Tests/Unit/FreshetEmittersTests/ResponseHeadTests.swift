import Testing

@testable import FreshetEmitters

@Suite("The head of a response")
struct ResponseHeadTests {
    /// Passes lines to a head as libcurl does: each line with its end.
    private func head(_ text: String, limits: ResponseHead.Limits = .init()) throws -> ResponseHead {
        var head = ResponseHead(limits)
        for line in lines(of: Array(text.utf8)) { try head.take(line) }
        return head
    }

    private func lines(of bytes: [UInt8]) -> [[UInt8]] {
        bytes.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast().map { Array($0) + [0x0A] }
    }

    @Test("fields are found with names in any case, and their values have no white space around them")
    func fields() throws {
        let head = try head(
            "HTTP/1.1 200 OK\r\nContent-Type:text/plain\r\nETAG: \t\"a b\" \r\nLink: <a>\r\nlink: <b>\r\nX-Empty:\r\n\r\n"
        )
        #expect(head.status == 200)
        #expect(head["content-type"] == "text/plain")
        #expect(head.token("etag") == "\"a b\"")
        #expect(head["link"] == "<b>")
        #expect(head.values(of: "link", atMost: 1) == ["<a>"])
        #expect(head.list("link") == "<a>,<b>")
        #expect(head["x-empty"] == "")
        #expect(head["date"] == nil)
    }

    @Test("the head is that of the final response, after interim responses")
    func interim() throws {
        let head = try head(
            "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nX-Trailer: 1\r\n")
        #expect(head.status == 200)
        #expect(head.values(of: "link").isEmpty)
        #expect(head["content-length"] == "3")
        #expect(head["x-trailer"] == nil)
    }

    @Test(
        "a head that two implementations may interpret differently is rejected",
        arguments: [
            ("Content-Length: 5\r\nTransfer-Encoding: chunked", "both a Content-Length and a Transfer-Encoding"),
            ("Transfer-Encoding: chunked\r\nContent-Length: 5", "both a Content-Length and a Transfer-Encoding"),
            ("Content-Length: 5\r\nContent-Length: 6", "two different lengths of the body"),
            ("Content-Length: 5, 6", "a Content-Length that is not a length"),
            ("Content-Length: +5", "a Content-Length that is not a length"),
            ("Content-Length: 0x5", "a Content-Length that is not a length"),
            ("Content-Length:", "a Content-Length that is not a length"),
            ("Content-Length: 9223372036854775808", "a Content-Length that is not a length"),
            ("Content-Length: 18446744073709551621", "a Content-Length that is not a length"),
            ("Transfer-Encoding: gzip, chunked", "a Transfer-Encoding other than chunked"),
            ("Transfer-Encoding: xchunked", "a Transfer-Encoding other than chunked"),
            ("Transfer-Encoding: identity", "a Transfer-Encoding other than chunked"),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "a Transfer-Encoding other than chunked"),
            ("X: a\r\n b", "a header line that continues the previous line (RFC 9112, 5.2)"),
            ("X: a\nY: b", "a header line that ends without a carriage return"),
            ("X: a\rY: b", "a header line with a control character in it"),
            ("X: a\0b", "a header line with a control character in it"),
            ("Content-Length : 5", "a header line without a valid name"),
            (": 5", "a header line without a valid name"),
            ("no colon", "a header line without a valid name"),
            ("Ä: 5", "a header line without a valid name"),
            (
                "X: e" + String(repeating: "\u{0301}", count: 31),
                "a header line with more than 30 combining characters in a row"
            ),
        ])
    func ambiguous(fields: String, violation: String) throws {
        #expect(throws: ResponseHead.Violation(violation)) { try head("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n") }
    }

    @Test(
        "a head with an invalid status line is rejected",
        arguments: [
            "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 ２００ OK", "HTTP/1.1  200 OK", "HTTP/1.1", "HTTP/1.12 200 OK",
        ])
    func statusLine(line: String) throws {
        #expect(throws: ResponseHead.Violation("a status line that is not of HTTP/1")) { try head("\(line)\r\n\r\n") }
    }

    @Test("equal lengths, chunked in any case, a date with colons and a missing reason phrase are accepted")
    func inOrder() throws {
        for fields in [
            "Content-Length: 5\r\nContent-Length: 5", "Transfer-Encoding: Chunked",
            "Date: Sun, 06 Nov 1994 08:49:37 GMT",
            "Content-Length: 9223372036854775807",
        ] {
            #expect(throws: Never.self) { try head("HTTP/1.1 200\r\n\(fields)\r\n\r\n") }
        }
    }

    @Test(
        "a status line of a version other than HTTP/1 is rejected", arguments: ["2", "2.0", "3", "0.9", "1.", "10.1"])
    func otherVersion(_ version: String) {
        #expect(throws: ResponseHead.Violation.self) { try head("HTTP/\(version) 200 OK\r\n\r\n") }
    }

    @Test("a head without a length and chunks is unframed")
    func unframed() throws {
        #expect(try head("HTTP/1.1 200 OK\r\nX: y\r\n\r\n").isUnframed)
        #expect(try !head("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").isUnframed)
        #expect(try !head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").isUnframed)
    }

    @Test("lines, bytes, interim responses and trailers are limited")
    func bounds() throws {
        let limits = ResponseHead.Limits(lines: 3, bytes: 64, interim: 2, trailerLines: 2, trailerBytes: 16)
        let good = "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\n"
        #expect(throws: Never.self) { try head(good, limits: limits) }
        #expect(throws: ResponseHead.Violation("more than 3 header lines")) {
            try head("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", limits: limits)
        }
        #expect(throws: ResponseHead.Violation("a header of more than 64 bytes")) {
            try head("HTTP/1.1 200 OK\r\nA: \(String(repeating: "a", count: 60))\r\n", limits: limits)
        }
        let interim = "HTTP/1.1 100 Continue\r\n\r\n"
        #expect(throws: Never.self) { try head(interim + interim + good, limits: limits) }
        #expect(throws: ResponseHead.Violation("more than 2 interim responses")) {
            try head(interim + interim + interim, limits: limits)
        }
        #expect(throws: Never.self) { try head(good + "T: 1\r\n\r\n", limits: limits) }
        for trailers in ["T: 1\r\nU: 2\r\nV: 3\r\n", "T: 12345678901234567890\r\n"] {
            #expect(throws: ResponseHead.Violation("more than 2 lines or 16 bytes of trailers")) {
                try head(good + trailers, limits: limits)
            }
        }
    }

    @Test("a token that is not ASCII is dropped, because it could not be sent back unchanged")
    func tokens() throws {
        var head = ResponseHead()
        for line in lines(of: Array("HTTP/1.1 200 OK\r\nETag: \"".utf8) + [0xE9] + Array("\"\r\n\r\n".utf8)) {
            try head.take(line)
        }
        #expect(head.token("etag") == nil)
        #expect(head["etag"] == "\"\u{FFFD}\"")
    }
}
