import FreshetEventLoop
import FreshetHelper
import Testing

@testable import FreshetEmitters
@testable import FreshetPipelines

/// With a real helper process, because the tests check the results of jq, expat, zlib and libcrypto.
@Suite("Checks of the content of a snapshot")
struct SnapshotCheckTests {
    let running: RunningLoop
    let transformer: JQTransformer
    /// 2026-01-01T00:00:00Z.
    static let now: Int64 = 1_767_225_600_000_000

    init() throws {
        running = try RunningLoop()
        transformer = try JQTransformer.withRealHelper(running)
    }

    /// Why the snapshot is rejected; nil if it passes the checks.
    func rejection(
        of snapshot: [UInt8], after copy: String? = nil, _ format: ContentFormat = .json,
        edit: (inout CheckRules) -> Void
    ) async -> String? {
        var rules = CheckRules()
        edit(&rules)
        let copy = copy.map { Array($0.utf8) }
        do throws(FetchError) {
            try await SnapshotChecks(rules, of: format, transformer, at: Self.now).pass(
                .bytes(snapshot), instead: .copy(SnapshotChecks.Copy(size: { copy?.count }, content: { copy })))
            return nil
        } catch {
            guard case .failed(let failure) = error, failure.kind == .content else { return "\(error)" }
            return failure.message
        }
    }

    func rejection(
        of snapshot: String, after copy: String? = nil, _ format: ContentFormat = .json,
        edit: (inout CheckRules) -> Void
    ) async -> String? {
        await rejection(of: Array(snapshot.utf8), after: copy, format, edit: edit)
    }

    // MARK: Items

    @Test("The items of a list are its elements; in other content 'items' selects the items")
    func leastItems() async {
        #expect(await rejection(of: "[1,2]") { $0.minItems = 2 } == nil)
        #expect(
            await rejection(of: "[1]") { $0.minItems = 2 }
                == "rejected by check.min-items: 1 item, at least 2 required")
        #expect(await rejection(of: "{\"keys\":[1,2]}") { ($0.minItems, $0.items) = (2, ".keys # all") } == nil)
        #expect(await rejection(of: "{\"a\":{\"x\":1}}") { ($0.minItems, $0.items) = (2, ".a") } != nil)
        let unknown = await rejection(of: "{\"keys\":[]}") { $0.minItems = 1 }
        #expect(unknown?.contains("'items' says where its items are") == true)
        let scalar = await rejection(of: "{\"keys\":7}") { ($0.minItems, $0.items) = (1, ".keys") }
        #expect(scalar?.contains("the items must be a list or an object, and are number") == true)
    }

    @Test("The items of a text are its lines that are not empty")
    func lines() async {
        #expect(await rejection(of: "a\r\n\r\n\nb\n", .text) { $0.minItems = 2 } == nil)
        #expect(await rejection(of: "a\n\n\n", .text) { $0.minItems = 2 } != nil)
        #expect(await rejection(of: "a\nb") { ($0.minItems, $0.form) = (2, .text) } == nil)
        let comments = #"split("\n") | map(select(test("^[^#]")))"#
        #expect(await rejection(of: "#\na\n", .text) { ($0.minItems, $0.items) = (2, comments) } != nil)
    }

    @Test("Checks run on each of several JSON texts, and the result for the last one counts")
    func severalTexts() async {
        #expect(await rejection(of: "[1]\n[1,2]\n") { $0.minItems = 2 } == nil)
        #expect(await rejection(of: "[1,2]\n[1]\n") { $0.minItems = 2 } != nil)
        #expect(await rejection(of: "{}\n[1,2]\n") { $0.minItems = 2 }?.contains("it is not a list but object") == true)
        let rules = { (rules: inout CheckRules) in (rules.jq, rules.validUntil) = (".good", ".expires") }
        let (old, new) = (#"{"good":true,"expires":"2025-01-01"}"#, #"{"good":true,"expires":"2027-01-01"}"#)
        #expect(await rejection(of: "\(old)\n\(new)\n", edit: rules) == nil)
        #expect(await rejection(of: "\(new)\n\(old)\n", edit: rules)?.contains("was valid until 2025-01-01") == true)
    }

    @Test("Content without a JSON text has no items", arguments: ["", " \n"])
    func noTexts(_ content: String) async {
        let rejection = await rejection(of: content) { ($0.minItems, $0.minBytes) = (1, 0) }
        #expect(rejection == "rejected by check.items: the items of the content cannot be counted")
    }

    @Test("The limit on a text counts its own bytes, not its length with JSON escapes")
    func longText() async throws {
        let narrow = JQTransformer(
            running.loop, workers: WorkerPool(), helper: try JQTransformer.realHelper(),
            maxOutput: 100)
        var rules = CheckRules(jq: #"split("\n") | length > 100"#)
        (rules.form, rules.minItems) = (.text, 100)
        try await SnapshotChecks(rules, of: .text, narrow, at: Self.now).pass(
            .bytes(Array(String(repeating: "\"\n", count: 100).utf8)), instead: .measured(nil))
    }

    @Test("The content expires at the earlier of the two times in its checks")
    func expiry() async throws {
        func expiry(_ snapshot: String, edit: (inout CheckRules) -> Void) async throws -> Int64? {
            var rules = CheckRules()
            edit(&rules)
            return try await SnapshotChecks(rules, of: .json, transformer, at: Self.now).pass(
                .bytes(Array(snapshot.utf8)), instead: .measured(nil))
        }
        let second: Int64 = 1_000_000
        let (now, end) = (Self.now / second, Self.now / second + 100)
        let content = #"{"until": \#(end), "made": \#(now - 10)}"#
        #expect(try await expiry(content) { $0.validUntil = ".until" } == end * second)
        #expect(try await expiry(content) { $0.madeAt = ".made" } == nil)
        #expect(
            try await expiry(content) { ($0.madeAt, $0.madeWithin) = (".made", .seconds(60)) } == (now + 50) * second)
        #expect(
            try await expiry(content) {
                ($0.validUntil, $0.madeAt, $0.madeWithin) = (".until", ".made", .seconds(6_000))
            } == end * second)
        #expect(try await expiry(content) { $0.jq = "true" } == nil)
    }

    // MARK: Shrinking

    @Test("A copy may lose at most the configured share of its items")
    func shrinking() async {
        let rules = { (rules: inout CheckRules) in (rules.shrink, rules.minItems) = (50, 1) }
        #expect(await rejection(of: "[1,2]", after: "[1,2,3,4]", edit: rules) == nil)
        #expect(await rejection(of: "[1,2,3,4,5]", after: "[1]", edit: rules) == nil)
        #expect(
            await rejection(of: "[1]", after: "[1,2,3,4]", edit: rules)
                == "1 item, was 4 (−75 %); check.shrink allows −50 %")
        #expect(await rejection(of: "[1]", after: nil, edit: rules) == nil, "there is nothing to compare it with")
        #expect(await rejection(of: "[1]", after: "{\"of\":\"another form\"}", edit: rules) == nil)
        #expect(await rejection(of: "[1]", after: "[1,2]") { ($0.shrink, $0.minItems) = (0, 1) } != nil)
    }

    @Test("Without a definition of items, check.shrink compares bytes")
    func shrinkingBytes() async {
        #expect(await rejection(of: "xx", after: "xxxx") { $0.shrink = 50 } == nil)
        #expect(
            await rejection(of: "x", after: "xxxx") { $0.shrink = 50 }
                == "1 byte, was 4 (−75 %); check.shrink allows −50 %")
        #expect(await rejection(of: "<a/>", after: "<a>longer</a>") { ($0.shrink, $0.form) = (50, .xml) } != nil)
    }

    // MARK: Forms

    @Test("JSON must be valid from its first to its last byte, and text must be UTF-8")
    func jsonAndText() async {
        #expect(await rejection(of: "{}\n[1]\n") { $0.form = .json } == nil)
        for broken in ["{\"a\":", "<html>", "  \n"] {
            #expect(await rejection(of: broken) { $0.form = .json }?.hasPrefix("check.format: ") == true)
        }
        for broken in ["{\"ttl\": 1\0000}", "[\"a\"]\0<html>", "[\"a\"]\n\0"] {
            #expect(await rejection(of: broken) { $0.form = .json }?.contains("is a NUL character") == true)
            #expect(await rejection(of: broken) { $0.jq = "true" }?.contains("is a NUL character") == true)
        }
        #expect(await rejection(of: "any\n") { $0.form = .text } == nil)
        #expect(await rejection(of: [0x61, 0xFF]) { $0.form = .text }?.hasPrefix("check.format: ") == true)
    }

    @Test("XML must be well-formed; an error has its line; unlimited entity expansion is rejected")
    func xml() async {
        #expect(await rejection(of: "<?xml version='1.0'?><a b='c'><d/></a>") { $0.form = .xml } == nil)
        #expect(
            await rejection(of: "<a>\n <b></a>") { $0.form = .xml }
                == "check.format: it is not well-formed XML: line 2, column 7: mismatched tag")
        #expect(await rejection(of: "{}") { $0.form = .xml } != nil)
        var bomb = "<!DOCTYPE a [<!ENTITY e0 \"\(String(repeating: "x", count: 1000))\">"
        for level in 1...9 {
            bomb += "<!ENTITY e\(level) \"\(String(repeating: "&e\(level - 1);", count: 10))\">"
        }
        bomb += "]><a>&e9;</a>"
        #expect(await rejection(of: bomb) { $0.form = .xml }?.contains("amplification") == true)
    }

    @Test("Text and attributes in XML may be longer than one parsed piece, at any position", arguments: 0..<8)
    func longXML(_ offset: Int) async {
        let filler = String(repeating: "x", count: (64 << 10) - 8 + offset)
        #expect(await rejection(of: "<a>\(filler)é€<b c='\(filler)'/>\n</a>") { $0.form = .xml } == nil)
        #expect(
            await rejection(of: "<a>\(filler)<b>\n</a>") { $0.form = .xml }
                == "check.format: it is not well-formed XML: line 2, column 3: mismatched tag")
        #expect(await rejection(of: "<a>\(filler)") { $0.form = .xml }?.contains("no element found") == true)
    }

    /// The helper has one copy of the input in memory and little else.
    @Test("XML and gzip may be as long as any input")
    func longest() async {
        let length = 250 << 20
        var text = [UInt8](repeating: UInt8(ascii: "\n"), count: length)
        text.replaceSubrange(0..<3, with: Array("<a>".utf8))
        text.replaceSubrange(length - 4..<length, with: Array("</b>".utf8))
        #expect(
            await rejection(of: text) { ($0.form, $0.maxBytes) = (.xml, .max) }?.hasSuffix("mismatched tag") == true)
        // Uncompressed blocks (RFC 1951, 3.2.4), and the checksum of another content.
        let size = 1 << 15
        let lengths = [size & 0xFF, size >> 8, ~size & 0xFF, ~size >> 8 & 0xFF].map { UInt8($0) }
        var end = 10
        while end + 5 + size + 5 + 8 <= length {
            text.replaceSubrange(end..<end + 5, with: [0] + lengths)
            end += 5 + size
        }
        text.replaceSubrange(0..<10, with: Self.hello[..<10])
        text.replaceSubrange(end..<end + 5, with: [1, 0, 0, 0xFF, 0xFF])
        #expect(
            await rejection(of: text) { ($0.form, $0.maxBytes) = (.gzip, .max) }
                == "check.format: it is not gzip: incorrect data check")
    }

    static let hello: [UInt8] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 255, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0,
    ]

    @Test("gzip that is truncated, has a wrong checksum or is followed by other bytes is rejected")
    func gzip() async {
        #expect(await rejection(of: Self.hello) { $0.form = .gzip } == nil)
        #expect(await rejection(of: Self.hello + Self.hello) { $0.form = .gzip } == nil, "members follow one another")
        #expect(
            await rejection(of: Self.hello.dropLast()) { $0.form = .gzip }
                == "check.format: it is not gzip: the data is truncated")
        var damaged = Self.hello
        damaged[18] ^= 1
        #expect(
            await rejection(of: damaged) { $0.form = .gzip }
                == "check.format: it is not gzip: incorrect data check")
        #expect(await rejection(of: Self.hello + Array("more".utf8)) { $0.form = .gzip } != nil)
        #expect(await rejection(of: "hello") { $0.form = .gzip } != nil)
    }

    static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBbjCCARWgAwIBAgIUU/c1GtWQZlhlsNd7iF+H7tCWqPswCgYIKoZIzj0EAwIw
        DDEKMAgGA1UEAwwBYTAgFw0yNjExMjExODIxMTRaGA8yMTI2MTAyODE4MjExNFow
        DDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABHIqa9v8TbNT
        8WLMTGMPKDwHZYDCY+8WF2YuQiSuDbgWKK4r+0uAhlnjB/SJ2P4eclDcgCmylnG1
        wQGENSLJxRKjUzBRMB0GA1UdDgQWBBSKj8S351+t/QSsICrM6ggB7lR77TAfBgNV
        HSMEGDAWgBSKj8S351+t/QSsICrM6ggB7lR77TAPBgNVHRMBAf8EBTADAQH/MAoG
        CCqGSM49BAMCA0cAMEQCIGSqHhWvkGYpJwuLXGgrCrjwSiHwPu5HipvxZb4UGkmo
        AiBf/GwvsnE5EbqHn0WCDTAV7lTbmiXHbrMRobq9fEh2MQ==
        -----END CERTIFICATE-----
        """

    @Test("The items of a bundle are its certificates, and each certificate must be valid")
    func pem() async {
        let two = "some words\n\(Self.certificate)\n\n\(Self.certificate)\n"
        #expect(await rejection(of: two) { ($0.form, $0.minItems) = (.pem, 2) } == nil)
        #expect(await rejection(of: two) { ($0.form, $0.minItems) = (.pem, 3) } != nil)
        #expect(await rejection(of: Self.certificate, after: two) { ($0.form, $0.shrink) = (.pem, 40) } != nil)
        let cut = String(two.dropLast(200))
        #expect(await rejection(of: cut) { $0.form = .pem }?.contains("text 2: ") == true)
        let fake = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        #expect(
            await rejection(of: fake) { $0.form = .pem }?
                .hasPrefix("check.format: it is not PEM: text 1 is not a certificate: ") == true)
        #expect(
            await rejection(of: "<html>") { $0.form = .pem }
                == "check.format: it is not PEM: it contains no '-----BEGIN …-----'")
    }

    // MARK: Times

    @Test(
        "The time until which data is valid may have the usual Internet formats",
        arguments: [
            ("1767225601", true), ("1767225600.5", true), ("1767225600", false),
            ("\"2026-01-01T00:00:01Z\"", true), ("\"2025-12-31T23:59:59.999Z\"", false),
            ("\"2026-01-01T01:59:59+02:00\"", false), ("\"2025-12-31T22:30:00-02:00\"", true),
            ("\"2026-01-02\"", true), ("\"2026-01-01\"", false), ("\"Thu, 01 Jan 2026 00:00:01 GMT\"", true),
            ("\"Wed, 31 Dec 2025 23:59:59 GMT\"", false),
        ])
    func validUntil(_ time: String, _ isValid: Bool) async {
        let rejection = await rejection(of: "{\"expires\":\(time)}") { $0.validUntil = ".expires" }
        #expect((rejection == nil) == isValid, "\(rejection ?? "")")
        if !isValid {
            #expect(rejection?.hasPrefix("rejected by check.valid-until: the content was valid until 202") == true)
        }
    }

    @Test(
        "A value that is not a time is rejected",
        arguments: [
            "null", "\"soon\"", "{}", "1e300", "\"2026-13-45\"", "\"2030-02-30\"", "\"2030-02-29T00:00:00Z\"",
            "\"2030-01-31T12:00:00+99:99\"", "\"2030-01-31T12:00:00+10:60\"", "\"2030-01-31T24:00:00Z\"",
            "\"Sun, 31 Feb 2030 12:00:00 GMT\"", "\"Thu, 31 Jan 2030 12:00:00 GMT\\u0000\"", "\"2030-01-31\\n\"",
            "\"2030-01-31T12:00:00Z\\u0000\"",
        ])
    func noTime(_ time: String) async {
        let rejection = await rejection(of: "{\"expires\":\(time)}") { $0.validUntil = ".expires" }
        #expect(rejection?.contains("check.valid-until") == true, "\(rejection ?? "passes")")
    }

    @Test(
        "A time that is out of range is rejected as such, and does not end the helper",
        arguments: ["1e300", "-1e300", "1767225600000", "253402300800", "-62135596801"])
    func farTime(_ time: String) async {
        let rejection = await rejection(of: "{\"expires\":\(time)}") { $0.validUntil = ".expires" }
        #expect(rejection?.contains("check.valid-until: ") == true, "\(rejection ?? "passes")")
        #expect(rejection?.contains("is not a time between the years 1 and 9999") == true, "\(rejection ?? "passes")")
        #expect(await transformer.idleHelpers == 1)
    }

    @Test(
        "Times in years with four digits are accepted",
        arguments: [
            ("253402300799", true), ("\"9999-12-31T23:59:59Z\"", true), ("\"0001-01-01\"", false),
            ("-62135596800", false),
        ])
    func farthestTimes(_ time: String, _ isValid: Bool) async {
        let rejection = await rejection(of: "{\"expires\":\(time)}") { $0.validUntil = ".expires" }
        #expect((rejection == nil) == isValid, "\(rejection ?? "passes")")
        if !isValid {
            #expect(
                rejection?.hasPrefix("rejected by check.valid-until: the content was valid until ") == true,
                "\(rejection ?? "")")
        }
    }

    @Test("Data must not be too old, nor from the future by more than clocks differ")
    func madeAt() async {
        func rejection(_ time: String, within: Duration?) async -> String? {
            await self.rejection(of: "{\"made\":\"\(time)\"}") { ($0.madeAt, $0.madeWithin) = (".made", within) }
        }
        #expect(await rejection("2025-12-30T00:00:00Z", within: .seconds(2 * 86_400)) == nil)
        #expect(
            await rejection("2025-12-29T23:59:59Z", within: .seconds(2 * 86_400))
                == "rejected by check.made-within: the content is of 2025-12-29T23:59:59Z, which is too old")
        #expect(await rejection("1999-01-01T00:00:00Z", within: nil) == nil)
        #expect(await rejection("2026-01-01T00:05:00Z", within: nil) == nil)
        #expect(await rejection("2026-01-01T00:05:01Z", within: nil)?.contains("this machine's clock") == true)
    }
}
