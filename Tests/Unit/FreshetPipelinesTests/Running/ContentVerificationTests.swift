import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Contents with a checksum or signature beside them")
struct ContentVerificationTests {
    /// The properties of one request.
    private struct Question: Equatable {
        var url: String
        var headers: [String]
        var tag: String?

        init(_ url: String, _ headers: [String] = [], tag: String? = nil) {
            self.url = url
            self.headers = headers
            self.tag = tag
        }
    }

    private static let url = "https://example.com/data"
    private static let list = HTTPSource(url: "https://example.com/SUMS", host: "example.com")
    private static let key = try? MinisignKey("RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3")

    private func stage(
        _ check: (inout CheckRules) -> Void, transform: String? = nil, budget: RequestBudget? = nil,
        parameters: [ParameterDefinition] = [], keys: [String: MinisignKey] = [:],
        inspector: ScriptedInspector? = nil
    ) throws -> Stage {
        var rules = CheckRules()
        check(&rules)
        var policy = RefreshPolicy(every: .seconds(3600), freshFor: .zero)
        policy.budget = budget
        var source = HTTPSource(url: Self.url, host: "example.com")
        source.headers = [HTTPHeader("X-Team", "blue"), .bearer("token")]
        let definition = PipelineDefinition(
            name: "test", source: .http(source), transform: transform, refresh: policy, check: rules,
            cache: CacheRules(file: "data"), parameters: parameters)
        return try Stage(
            definition, helpers: CheckHelpers(verifier: ScriptedVerifier(keys: keys), inspector: inspector))
    }

    private func run(_ stage: Stage, _ answers: ScriptedOrigin.Answer...) throws {
        for (place, answer) in answers.enumerated() { stage.origin.add(answer, first: place == 0) }
        try stage.start()
        try stage.fire("start")
    }

    private func questions(_ stage: Stage) -> [Question] {
        stage.origin.asked.compactMap { asked in
            guard case .http(let source) = asked.source else { return nil }
            return Question(source.url, source.headers.map(\.name), tag: asked.validators?.entityTag)
        }
    }

    private static func sums(_ text: String, as name: String = "data") -> ScriptedOrigin.Answer {
        .content("\(ScriptedVerifier.sum(of: text))  \(name)\n")
    }

    // MARK: Checksums

    @Test("the file beside an answer has the proxy and the limit on redirects of the source, at any origin")
    func requestBeside() {
        var source = HTTPSource(url: "https://a.example/1", headers: [.bearer("token")], host: "a.example")
        (source.proxy, source.redirects) = (.url("http://proxy.example:3128"), .none)
        for (host, headers) in [("a.example", source.headers), ("b.example", [])] {
            let beside = source.beside("https://\(host)/SUMS", host: host) { ScriptedURLs.resolve($0, against: $1) }
            #expect(beside.proxy == source.proxy && beside.redirects == .none && beside.headers == headers)
        }
    }

    @Test("Content with its checksum in the list becomes the copy; an unchanged answer needs one request")
    func sum() throws {
        let stage = try stage { $0.sha256 = ChecksumRule.list(Self.list) }
        try run(stage, .content("one", tag: "v1"), Self.sums("one"), .version("one", tag: "v1"))
        #expect(stage.store.text == "one" && stage.outcomes == [.changed])
        try stage.advance(3600)
        #expect(stage.outcomes == [.changed, .unchanged])
        let fields = ["X-Team", "Authorization"]
        #expect(
            questions(stage) == [
                Question(Self.url, fields), Question("https://example.com/SUMS", fields),
                Question(Self.url, fields, tag: "v1"),
            ])
    }

    @Test("Content with another checksum is rejected: kept, reported, and retried soon; the origin repairs it")
    func otherSum() throws {
        let stage = try stage { $0.sha256 = ChecksumRule.list(Self.list) }
        try run(stage, .content("one"), Self.sums("one"))
        stage.origin.answers(.content("two"), Self.sums("one"), .content("two"), Self.sums("two"))
        try stage.advance(60)
        try stage.fire("reload")
        #expect(stage.store.text == "one")
        let refused = try #require(stage.status.rejected)
        #expect(refused.digest == "two")
        #expect(
            refused.reason.hasPrefix("check.sha256: the content has the checksum \(ScriptedVerifier.sum(of: "two"))"))
        #expect(refused.reason.hasSuffix("if the origin is replacing its files, the next attempt succeeds"))
        #expect(stage.status.next?.reason == .retry)
        try stage.advance(2)
        #expect(stage.store.text == "two" && stage.status.failing == nil)
        #expect(stage.outcomes == [.changed, .failed, .changed])
    }

    @Test("A configured checksum needs no request; other content is rejected until the configuration changes")
    func pinned() throws {
        let stage = try stage { $0.sha256 = .digest(ScriptedVerifier.sum(of: "one")) }
        try run(stage, .content("one"))
        #expect(stage.store.text == "one" && questions(stage).map(\.url) == [Self.url])
        stage.origin.answers(.content("two"))
        try stage.advance(3600)
        #expect(stage.store.text == "one" && stage.outcomes == [.changed, .failed])
        #expect(
            stage.status.rejected?.reason
                == "check.sha256: the content has the checksum \(ScriptedVerifier.sum(of: "two")), not "
                + "\(ScriptedVerifier.sum(of: "one")); if it is right, configure it")
    }

    @Test("Its name in the list may be configured; content without an entry in the list is rejected")
    func names() throws {
        let named = try stage { $0.sha256 = ChecksumRule.list(Self.list, name: "pool/x.gz") }
        try run(named, .content("one"), Self.sums("one", as: "pool/x.gz"))
        #expect(named.store.text == "one")
        let absent = try stage { $0.sha256 = ChecksumRule.list(Self.list) }
        try run(absent, .content("one"), Self.sums("one", as: "other"))
        #expect(
            absent.status.rejected?.reason
                == "check.sha256: the list has no checksum for 'data'; set 'name' to the file's name in the list")
    }

    @Test("A list that cannot be fetched is a failure of its origin, and does not reject the content")
    func noList() throws {
        let stage = try stage { $0.sha256 = ChecksumRule.list(Self.list) }
        try run(stage, .long("one"), .fails(RunFailure(.transient, "503", retryAfter: .seconds(60))))
        #expect(stage.outcomes == [.failed] && stage.status.rejected == nil)
        let failure = try #require(stage.status.failing).failure
        #expect(failure.kind == .transient && failure.message == "check.sha256: 503")
        #expect(failure.retryAfter == .seconds(60))
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
    }

    @Test("Another origin gets no header fields and credentials")
    func otherOrigin() throws {
        let stage = try stage {
            $0.sha256 = ChecksumRule.list(HTTPSource(url: "https://sums.example/data.sha256", host: "sums.example"))
        }
        try run(stage, .content("one"), .content(ScriptedVerifier.sum(of: "one")))
        #expect(stage.store.text == "one")
        #expect(questions(stage).last == Question("https://sums.example/data.sha256"))
    }

    @Test(
        "The checksum is that of the answer, before a program changes it; rejected content is kept like the copy"
    )
    func beforeTransform() throws {
        let stage = try stage({ $0.sha256 = ChecksumRule.list(Self.list) }, transform: "upper")
        try run(stage, .content("one"), Self.sums("one"))
        #expect(stage.store.text == "ONE")
        stage.origin.answers(.content("two"), Self.sums("TWO"))
        try stage.advance(60)
        try stage.fire("reload")
        #expect(stage.store.text == "ONE" && stage.status.rejected?.digest == "TWO")
    }

    @Test("A rejected answer that no program can read has the reason of the rejection")
    func unreadable() throws {
        let stage = try stage({ $0.sha256 = ChecksumRule.list(Self.list) }, transform: "none")
        try run(stage, .content("one"), Self.sums("two"))
        #expect(stage.status.failing?.failure.message.hasPrefix("check.sha256: ") == true)
        #expect(stage.status.rejected == nil)
    }

    @Test("A long answer has the checksum that was computed on its way to the disk")
    func long() throws {
        let stage = try stage { $0.sha256 = ChecksumRule.list(Self.list) }
        try run(stage, .long("one"), Self.sums("one"))
        #expect(stage.store.text == "one")
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
    }

    @Test("The list is a counted request of the run; an exhausted budget does not waste the content")
    func budget() throws {
        let stage = try stage(
            { $0.sha256 = ChecksumRule.list(Self.list) }, budget: RequestBudget(1, per: .hour))
        try run(stage, .content("one"), Self.sums("one"))
        #expect(stage.store.text == "one" && stage.status.failing == nil)
        #expect(stage.origin.asked.count == 2 && stage.status.budget?.used == 2)
    }

    @Test("A run that is ended while it fetches the list leaves nothing")
    func ended() throws {
        let stage = try stage { $0.sha256 = ChecksumRule.list(Self.list) }
        try run(stage, .long("one"), .hangs())
        stage.service?.cancel()
        try stage.executor.runUntilIdle()
        #expect(stage.origin.open == 0 && stage.store.text == nil)
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
    }

    @Test("Its URL may have parameters, and another value makes another binding")
    func parameters() throws {
        let list = HTTPSource(url: "https://example.com/{version}/SUMS", host: "example.com")
        let stage = try stage(
            { $0.sha256 = ChecksumRule.list(list) },
            parameters: [ParameterDefinition("version", default: "1", rule: .any)])
        try run(stage, .content("one", tag: "v1"), Self.sums("one"))
        try stage.set(["version": "2"])
        #expect(
            questions(stage).map(\.url)[1...] == ["https://example.com/1/SUMS", Self.url, "https://example.com/2/SUMS"])
        #expect(questions(stage).map(\.tag) == [nil, nil, nil, nil])
    }

    // MARK: Signatures

    private func signature(
        of text: String, by key: MinisignKey, kind: MinisignSignature.Kind = .digest, comment: String = "file:data"
    ) -> (ScriptedOrigin.Answer) {
        let message = kind == .digest ? ScriptedVerifier.digest(of: text) : Array(text.utf8)
        let signature = ScriptedVerifier.signature(of: message, by: key.ed25519)
        let global = ScriptedVerifier.signature(of: signature + Array(comment.utf8), by: key.ed25519)
        return .content(
            """
            untrusted comment: a
            \(Self.base64(Array(kind.rawValue.utf8) + key.number + signature))
            trusted comment: \(comment)
            \(Self.base64(global))
            """)
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        let bits = bytes.flatMap { byte in (0..<8).map { byte >> (7 - $0) & 1 } }
        let text = stride(from: 0, to: bits.count, by: 6).map { start in
            alphabet[(start..<start + 6).reduce(0) { $0 << 1 | ($1 < bits.count ? Int(bits[$1]) : 0) }]
        }
        return String(text) + String(repeating: "=", count: (4 - text.count % 4) % 4)
    }

    @Test(
        "Content signed by the key, in either kind, becomes the copy, and the trusted comment is reported",
        arguments: [true, false])
    func signed(isLong: Bool) throws {
        let key = try #require(Self.key)
        for kind in [MinisignSignature.Kind.digest, .whole] {
            let stage = try stage { $0.minisign = SignatureRule(.key(key)) }
            try run(stage, isLong ? .long("one") : .content("one"), signature(of: "one", by: key, kind: kind))
            #expect(stage.store.text == "one")
            #expect(questions(stage).last?.url == "https://example.com/data.minisig")
            #expect(stage.events.contains(.signed(comment: "file:data")))
            #expect(stage.status.generation?.comment == "file:data")
            try stage.restart()
            #expect(stage.status.generation?.comment == "file:data")
            // For other content no comment is known.
            stage.runner.publishes(CurrentGeneration(number: 2, size: 3, digest: "two", committedAt: 0, path: "data"))
            #expect(stage.status.generation?.comment == nil)
        }
    }

    @Test("Another content, another key, another comment and an invalid signature file are rejected")
    func notSigned() throws {
        let key = try #require(Self.key)
        let other = try MinisignKey("RWQAAAAAAAAAAHmlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3")
        let comment = signature(of: "one", by: key).text.replacing("file:data", with: "file:DATA")
        let cases: [(ScriptedOrigin.Answer, String)] = [
            (signature(of: "two", by: key), "the signature does not match this content"),
            (
                signature(of: "one", by: other),
                "the signature was made with the key 0000000000000000, and E7620F1842B4E81F is trusted"
            ),
            (.content(comment), "the trusted comment does not match its signature"),
            (.content("<html>"), "the signature file is not a signature of minisign"),
        ]
        for (answer, words) in cases {
            let stage = try stage { $0.minisign = SignatureRule(.key(key)) }
            try run(stage, .content("one"), answer)
            #expect(stage.store.text == nil)
            #expect(stage.status.rejected?.reason.hasPrefix("check.minisign: \(words)") == true, "\(words)")
            #expect(!stage.events.contains { if case .signed = $0 { true } else { false } })
        }
    }

    @Test("The digest of a signed content is not accepted as signed content, whatever kind the signature states")
    func digest() throws {
        let key = try #require(Self.key)
        // By its length alone it could be a digest.
        let digest = String(repeating: "d", count: 64)
        let stage = try stage { $0.minisign = SignatureRule(.key(key)) }
        try run(stage, .content(digest), signature(of: digest, by: key, kind: .whole))
        #expect(stage.store.text == nil)
        #expect(stage.status.rejected?.reason.contains("of the old kind") == true)
    }

    @Test("The key may be in a file; an unreadable file does not reject the content")
    func keyFile() throws {
        let key = try #require(Self.key)
        let rule = SignatureRule(.file("/etc/key.pub"))
        let stage = try stage({ $0.minisign = rule }, keys: ["/etc/key.pub": key])
        try run(stage, .content("one"), signature(of: "one", by: key))
        #expect(stage.store.text == "one")
        let none = try self.stage { $0.minisign = rule }
        try run(none, .content("one"), signature(of: "one", by: key))
        #expect(none.status.rejected == nil && none.status.failing?.failure.kind == .local)
    }

    @Test("Checksum and signature must both be right")
    func both() throws {
        let key = try #require(Self.key)
        let stage = try stage {
            $0.sha256 = ChecksumRule.list(Self.list)
            $0.minisign = SignatureRule(.key(key))
        }
        try run(stage, .content("one"), Self.sums("one"), signature(of: "two", by: key))
        #expect(stage.status.rejected?.reason.hasPrefix("check.minisign: ") == true)
        stage.origin.answers(.content("one"), Self.sums("one"), signature(of: "one", by: key))
        try stage.advance(60)
        try stage.fire("reload")
        #expect(stage.store.text == "one")
    }

    // MARK: Programs

    @Test("A program inspects the content after all other checks; content that it does not accept is rejected")
    func program() throws {
        let inspector = ScriptedInspector()
        let stage = try stage(
            {
                $0.exec = InspectionRule(["/check", "x"])
                $0.minBytes = 3
            }, transform: "upper", inspector: inspector)
        try run(stage, .content("one"))
        #expect(stage.store.text == "ONE")
        inspector.state.withLock { $0.failure = RunFailure(.content, "no") }
        stage.origin.answers(.content("two"))
        try stage.advance(60)
        try stage.fire("reload")
        #expect(stage.store.text == "ONE" && stage.status.rejected?.digest == "TWO")
        // It does not get content that another check rejects.
        stage.origin.answers(.content("x"))
        try stage.advance(60)
        try stage.fire("reload")
        #expect(Set(inspector.state.withLock { $0.looked }) == ["test /check x: ONE", "test /check x: TWO"])
    }

    @Test("A program that fails does not reject the content, and does not accept it")
    func programFails() throws {
        let inspector = ScriptedInspector()
        inspector.state.withLock { $0.failure = RunFailure(.local, "not run") }
        let stage = try stage({ $0.exec = InspectionRule(["/check"]) }, inspector: inspector)
        try run(stage, .long("one"))
        #expect(stage.store.text == nil && stage.status.rejected == nil)
        #expect(stage.status.failing?.failure.message == "check.exec: not run")
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
    }

    @Test("Without a helper for a check, no content passes it")
    func nobody() throws {
        for check: (inout CheckRules) -> Void in [
            { $0.sha256 = ChecksumRule.list(Self.list) }, { $0.exec = InspectionRule(["/check"]) },
        ] {
            var rules = CheckRules()
            check(&rules)
            let stage = try Stage(check: rules)
            try run(stage, .content("one"))
            #expect(stage.store.text == nil && stage.status.rejected == nil)
        }
    }
}

extension ScriptedOrigin.Answer {
    /// For a call with content.
    fileprivate var text: String {
        if case .content(let text, _, _) = self { text } else { "" }
    }
}
