import FreshetModel

@testable import FreshetEmitters
@testable import FreshetPipelines

extension FuzzTarget {
    /// The head of a response: lines, fields, and the parsed values of the fields.
    static let httpHead = FuzzTarget(
        "http-head",
        shapes: [
            CostShape("fields", before: "HTTP/1.1 200 OK\r\n", unit: "a: b\r\n", after: "\r\n", upTo: 1_500),
            CostShape("a long field", before: "HTTP/1.1 200 OK\r\na: ", unit: "b", after: "\r\n\r\n"),
            CostShape("a long name", before: "HTTP/1.1 200 OK\r\n", unit: "b", after: ": a\r\n\r\n"),
            CostShape("space", before: "HTTP/1.1 200 OK\r\na:", unit: " ", after: "b\r\n\r\n"),
            CostShape("a long reason", before: "HTTP/1.1 200 ", unit: "b", after: "\r\n\r\n"),
            directives("max-age=1,"), directives("\\\""), directives("\"a"), directives("="), directives("é"),
            CostShape(
                "combining characters in a directive", before: "HTTP/1.1 200 OK\r\ncache-control: n",
                unit: "\u{301}\u{323}", after: "\r\n\r\n"),
            CostShape(
                "combining characters in a range", before: "HTTP/1.1 200 OK\r\ncontent-range: b",
                unit: "\u{301}\u{323}", after: " 1-2/3\r\n\r\n"),
            CostShape(
                "combining characters in a type", before: "HTTP/1.1 200 OK\r\ncontent-type: b",
                unit: "\u{301}\u{323}", after: "\r\n\r\n"),
            CostShape(
                "combining characters in a coding", before: "HTTP/1.1 200 OK\r\naccept-ranges: n",
                unit: "\u{301}\u{323}", after: "\r\n\r\n"),
            CostShape("numbers in a tag", before: "HTTP/1.1 200 OK\r\netag: \"", unit: "a1-", after: "\"\r\n\r\n"),
            CostShape("digits", before: "HTTP/1.1 200 OK\r\nretry-after: ", unit: "9", after: "\r\n\r\n"),
            CostShape(
                "a location", before: "HTTP/1.1 302 OK\r\nlocation: /", unit: "../a/", after: "\r\n\r\n", upTo: 8_000),
            CostShape("interim responses", unit: "HTTP/1.1 100 C\r\n\r\n", upTo: 150),
        ],
        read: { input in
            guard let head = head(input) else { return }
            keep(facts(of: head))
        },
        check: { input throws(FuzzViolation) in
            guard let head = head(input) else { return }
            try hold("a status has three digits", (100...999).contains(head.status))
            let facts = facts(of: head)
            if let remaining = facts.remaining {
                try hold("content is fresh for no time below zero", remaining >= .zero)
            }
            if let pause = facts.retryAfter {
                try hold("a pause is between nothing and a week", (.zero...RetryAfter.longest).contains(pause))
            }
            if let range = facts.range {
                try hold("a range has its ends in order", range.first <= range.last && range.last < range.total ?? .max)
            }
            if let type = facts.mediaType {
                try hold(
                    "a media type has no parameters and no space",
                    !type.isEmpty && !type.contains { $0 == ";" || $0 == " " })
            }
            if let location = facts.location {
                try hold("a redirect has no user", location.user == nil && location.password == nil)
                try hold("a redirect leads to HTTP", ["http", "https"].contains(location.origin.scheme))
                try hold("a location that is read again is the same", Location(location.url)?.url == location.url)
            }
            for name in ["etag", "last-modified"] {
                guard let token = head.token(name) else { continue }
                try hold("what is sent back is printable", token.utf8.allSatisfy { (0x20..<0x7F).contains($0) })
            }
            if isOneOfHTTP1(input) {
                let (lengths, codings) = (head.values(of: "content-length"), head.values(of: "transfer-encoding"))
                try hold("a response has one framing", lengths.isEmpty || codings.isEmpty)
                try hold("a response has one length", Set(lengths).count <= 1)
            }
        })

    private static func directives(_ unit: String) -> CostShape {
        CostShape(
            "directives of \(unit)", before: "HTTP/1.1 200 OK\r\ncache-control: ", unit: unit, after: "\r\n\r\n")
    }

    /// Whether there is no interim response, and the response is HTTP/1, whose framing depends on its fields.
    private static func isOneOfHTTP1(_ input: [UInt8]) -> Bool {
        input.starts(with: "HTTP/1.".utf8) && input.dropFirst(9).first != UInt8(ascii: "1")
    }

    /// Nil if the head is rejected.
    private static func head(_ input: [UInt8]) -> ResponseHead? {
        var head = ResponseHead()
        var rest = input[...]
        while !rest.isEmpty {
            let end = rest.firstIndex(of: 0x0A) ?? rest.endIndex - 1
            do throws(ResponseHead.Violation) {
                try head.take(rest[...end])
            } catch {
                return nil
            }
            rest = rest[(end + 1)...]
        }
        // The framing is checked at the end of the head.
        do throws(ResponseHead.Violation) {
            try head.take("\r\n".utf8)
        } catch {
            return nil
        }
        return head
    }

    private struct Facts {
        var remaining: Duration?
        var retryAfter: Duration?
        var range: ContentRange?
        var mediaType: String?
        var location: Location?
        var validators: Validators
        var partial: PartialBody?
        var link: String?
    }

    /// Reads the same values of a head as the program.
    private static func facts(of head: ResponseHead) -> Facts {
        let answer = HTTPAnswer(
            status: head.status, host: "origin", contentType: head["content-type"], entityTag: head.token("etag"),
            lastModified: head.token("last-modified"), date: head["date"], received: now,
            retryAfter: head["retry-after"], wasConditional: true)
        keep(answer.meaning(now: now))
        keep(head.isUnframed)
        return Facts(
            remaining: OriginFreshness(
                cacheControl: head.list("cache-control"), expires: head["expires"], date: head["date"],
                age: head["age"]
            ).remaining(after: .seconds(1), now: now),
            retryAfter: head["retry-after"].flatMap { RetryAfter.parse($0, now: now) },
            range: head["content-range"].flatMap { ContentRange($0) }, mediaType: answer.mediaType,
            location: head["location"].flatMap { base?.resolving($0) }, validators: answer.validators,
            partial: PartialBody(
                of: answer,
                .init(contentEncoding: head["content-encoding"], acceptRanges: head["accept-ranges"]),
                announced: 1 << 20),
            link: LinkField.target(of: "next", in: head.values(of: "link", atMost: 16)))
    }

    private static let base = Location("https://origin.example/a/b")
    /// 2026-11-23.
    static let now: Int64 = 1_795_400_000

    /// The header field `Link`, one value on each line.
    static let linkField = FuzzTarget(
        "link",
        shapes: [
            CostShape("links", unit: "<a>; rel=prev, "),
            CostShape("parameters", before: "<a>", unit: "; a=b", after: "; rel=next"),
            CostShape("relations", before: "<a>; rel=\"", unit: "b ", after: "\""),
            CostShape("an unfinished target", unit: "<"),
            CostShape("an unfinished string", before: "<a>; rel=\"", unit: "\\\""),
            CostShape("semicolons", before: "<a>", unit: ";"), CostShape("commas", unit: ","),
            CostShape("lines", unit: "<a>; rel=prev\n"),
            CostShape("combining characters", before: "<a>; rel=\"n", unit: "\u{301}\u{323}", after: "\""),
            CostShape("white space of other scripts", before: "<a>; rel=\"", unit: "\u{3000}", after: "\""),
        ],
        read: { input in keep(LinkField.target(of: "next", in: values(input))) },
        check: { input throws(FuzzViolation) in
            let values = values(input)
            guard let target = LinkField.target(of: "next", in: values) else { return }
            try hold("a target ends at its bracket", !target.utf8.contains(UInt8(ascii: ">")))
            try hold("a target stands in the field", values.contains { $0.utf8.count >= target.utf8.count + 2 })
            let again = LinkField.target(of: "NEXT", in: ["<x>; rel=other, <\(target)>; rel=\"a next\""])
            try hold("a link that is written again leads to the same place", again == target)
        })

    private static func values(_ input: [UInt8]) -> [String] {
        input.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
    }
}

extension FuzzTarget {
    /// The answer of a token endpoint.
    static let tokenAnswer = FuzzTarget(
        "token-answer",
        shapes: [
            CostShape("members", before: "{\"a\":{\"a\":1", unit: ",\"b\":[]", after: "}}"),
            CostShape("arrays", before: "{\"a\":[0", unit: ",[1,{}]", after: "]}"),
            CostShape("an unfinished nesting", before: "{\"a\":", unit: "["),
            CostShape("escapes", before: "{\"access_token\":\"", unit: "\\u0061", after: "\"}"),
            CostShape("combining characters", before: "{\"n", unit: "\u{301}\u{323}", after: "\":1}"),
            CostShape("white space", before: "{", unit: " ", after: "}"),
            CostShape("digits", before: "{\"expires_in\":", unit: "9", after: "}"),
        ],
        read: { input in keep(try? TokenAnswer(input)) },
        check: { input throws(FuzzViolation) in
            let answer: TokenAnswer
            do throws(TokenAnswer.ValidationError) {
                answer = try TokenAnswer(input)
            } catch {
                return try hold("an error quotes nothing", error.sentence.hasPrefix("its "))
            }
            try hold("a token fits a header field", answer.token.utf8.allSatisfy { (0x21...0x7E).contains($0) })
            try hold("a token has a length", (1...TokenAnswer.tokenLimit).contains(answer.token.utf8.count))
            let life = answer.life ?? .zero
            try hold("a life is bounded", life >= .zero && life <= .seconds(TokenAnswer.longestLife))
        })
}
