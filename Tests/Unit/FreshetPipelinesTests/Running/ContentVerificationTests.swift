import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Contents whose sum or signature lies beside them")
struct ContentVerificationTests {
    /// What one request asked for.
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
            definition, helpers: CheckHelpers(prover: ScriptedProver(keys: keys), inspector: inspector))
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
        .content("\(ScriptedProver.sum(of: text))  \(name)\n")
    }

    // MARK: Sums

    @Test("With its sum in the list it becomes the copy; what did not change is asked for alone")
    func sum() throws {
        let stage = try stage { $0.sha256 = ChecksumRule(list: Self.list) }
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

    @Test("With another sum it is refused: kept aside, told, and tried again soon; the origin mends it")
    func otherSum() throws {
        let stage = try stage { $0.sha256 = ChecksumRule(list: Self.list) }
        try run(stage, .content("one"), Self.sums("one"))
        stage.origin.answers(.content("two"), Self.sums("one"), .content("two"), Self.sums("two"))
        try stage.advance(60)
        try stage.fire("reload")
        #expect(stage.store.text == "one")
        let refused = try #require(stage.status.refused)
        #expect(refused.digest == "two")
        #expect(refused.reason.hasPrefix("check.sha256: the content has the sum \(ScriptedProver.sum(of: "two"))"))
        #expect(refused.reason.hasSuffix("if the origin is just replacing its files, that mends itself"))
        #expect(stage.status.next?.reason == .retry)
        try stage.advance(2)
        #expect(stage.store.text == "two" && stage.status.failing == nil)
        #expect(stage.outcomes == [.changed, .failed, .changed])
    }

    @Test("What it is called in the list may be configured; what is not in the list is refused")
    func names() throws {
        let named = try stage { $0.sha256 = ChecksumRule(list: Self.list, name: "pool/x.gz") }
        try run(named, .content("one"), Self.sums("one", as: "pool/x.gz"))
        #expect(named.store.text == "one")
        let absent = try stage { $0.sha256 = ChecksumRule(list: Self.list) }
        try run(absent, .content("one"), Self.sums("one", as: "other"))
        #expect(
            absent.status.refused?.reason
                == "check.sha256: the list has no sum of 'data'; 'name' says what it is called there")
    }

    @Test("A list that cannot be had is a failure of its origin, and refuses nothing")
    func noList() throws {
        let stage = try stage { $0.sha256 = ChecksumRule(list: Self.list) }
        try run(stage, .long("one"), .fails(RunFailure(.transient, "503", retryAfter: .seconds(60))))
        #expect(stage.outcomes == [.failed] && stage.status.refused == nil)
        let failure = try #require(stage.status.failing).failure
        #expect(failure.kind == .transient && failure.message == "check.sha256: 503")
        #expect(failure.retryAfter == .seconds(60))
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
    }

    @Test("Another origin is asked without header fields and credentials")
    func otherOrigin() throws {
        let stage = try stage {
            $0.sha256 = ChecksumRule(list: HTTPSource(url: "https://sums.example/data.sha256", host: "sums.example"))
        }
        try run(stage, .content("one"), .content(ScriptedProver.sum(of: "one")))
        #expect(stage.store.text == "one")
        #expect(questions(stage).last == Question("https://sums.example/data.sha256"))
    }

    @Test(
        "The sum is that of the answer, before a program made something else of it; what is refused is kept as the copy"
    )
    func beforeTransform() throws {
        let stage = try stage({ $0.sha256 = ChecksumRule(list: Self.list) }, transform: "upper")
        try run(stage, .content("one"), Self.sums("one"))
        #expect(stage.store.text == "ONE")
        stage.origin.answers(.content("two"), Self.sums("TWO"))
        try stage.advance(60)
        try stage.fire("reload")
        #expect(stage.store.text == "ONE" && stage.status.refused?.digest == "TWO")
    }

    @Test("A refused answer that no program can read says why it was refused")
    func unreadable() throws {
        let stage = try stage({ $0.sha256 = ChecksumRule(list: Self.list) }, transform: "none")
        try run(stage, .content("one"), Self.sums("two"))
        #expect(stage.status.failing?.failure.message.hasPrefix("check.sha256: ") == true)
        #expect(stage.status.refused == nil)
    }

    @Test("A long answer has the sum that was made on its way to the disk")
    func long() throws {
        let stage = try stage { $0.sha256 = ChecksumRule(list: Self.list) }
        try run(stage, .long("one"), Self.sums("one"))
        #expect(stage.store.text == "one")
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
    }

    @Test("The list is a request of the run, and counts; a budget that is used up by then does not waste the content")
    func budget() throws {
        let stage = try stage(
            { $0.sha256 = ChecksumRule(list: Self.list) }, budget: RequestBudget(1, per: .hour))
        try run(stage, .content("one"), Self.sums("one"))
        #expect(stage.store.text == "one" && stage.status.failing == nil)
        #expect(stage.origin.asked.count == 2 && stage.status.budget?.used == 2)
    }

    @Test("A run that is ended while it asks for the list leaves nothing")
    func ended() throws {
        let stage = try stage { $0.sha256 = ChecksumRule(list: Self.list) }
        try run(stage, .long("one"), .hangs())
        stage.service?.cancel()
        try stage.executor.runUntilIdle()
        #expect(stage.origin.open == 0 && stage.store.text == nil)
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
    }

    @Test("Parameters have places in its URL, and with another value nothing is taken for unchanged")
    func parameters() throws {
        let list = HTTPSource(url: "https://example.com/{version}/SUMS", host: "example.com")
        let stage = try stage(
            { $0.sha256 = ChecksumRule(list: list) },
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
        let message = kind == .digest ? ScriptedProver.digest(of: text) : Array(text.utf8)
        let signature = ScriptedProver.signature(of: message, by: key.ed25519)
        let global = ScriptedProver.signature(of: signature + Array(comment.utf8), by: key.ed25519)
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
        "Signed by the key, of either kind, it becomes the copy, and the publisher's words are told",
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
            // Of another content nothing is known.
            stage.runner.offers(CurrentGeneration(number: 2, size: 3, digest: "two", committedAt: 0, path: "data"))
            #expect(stage.status.generation?.comment == nil)
        }
    }

    @Test("Another content, another key, another comment and what is no signature are refused")
    func notSigned() throws {
        let key = try #require(Self.key)
        let other = try MinisignKey("RWQAAAAAAAAAAHmlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3")
        let comment = signature(of: "one", by: key).text.replacing("file:data", with: "file:DATA")
        let cases: [(ScriptedOrigin.Answer, String)] = [
            (signature(of: "two", by: key), "the signature is not that of this content"),
            (
                signature(of: "one", by: other),
                "the signature was made with the key 0000000000000000, and E7620F1842B4E81F is trusted"
            ),
            (.content(comment), "the trusted comment is not the one that was signed"),
            (.content("<html>"), "what lies beside the content is no signature of minisign"),
        ]
        for (answer, words) in cases {
            let stage = try stage { $0.minisign = SignatureRule(.key(key)) }
            try run(stage, .content("one"), answer)
            #expect(stage.store.text == nil)
            #expect(stage.status.refused?.reason.hasPrefix("check.minisign: \(words)") == true, "\(words)")
            #expect(!stage.events.contains { if case .signed = $0 { true } else { false } })
        }
    }

    @Test("The digest of what was signed is none of what was signed, whatever kind its signature says it has")
    func digest() throws {
        let key = try #require(Self.key)
        // By its length alone it could be one.
        let digest = String(repeating: "d", count: 64)
        let stage = try stage { $0.minisign = SignatureRule(.key(key)) }
        try run(stage, .content(digest), signature(of: digest, by: key, kind: .whole))
        #expect(stage.store.text == nil)
        #expect(stage.status.refused?.reason.contains("of the old kind") == true)
    }

    @Test("The key may be a file's; one that cannot be read refuses nothing")
    func keyFile() throws {
        let key = try #require(Self.key)
        let rule = SignatureRule(.file("/etc/key.pub"))
        let stage = try stage({ $0.minisign = rule }, keys: ["/etc/key.pub": key])
        try run(stage, .content("one"), signature(of: "one", by: key))
        #expect(stage.store.text == "one")
        let none = try self.stage { $0.minisign = rule }
        try run(none, .content("one"), signature(of: "one", by: key))
        #expect(none.status.refused == nil && none.status.failing?.failure.kind == .local)
    }

    @Test("Sum and signature both have to be right")
    func both() throws {
        let key = try #require(Self.key)
        let stage = try stage {
            $0.sha256 = ChecksumRule(list: Self.list)
            $0.minisign = SignatureRule(.key(key))
        }
        try run(stage, .content("one"), Self.sums("one"), signature(of: "two", by: key))
        #expect(stage.status.refused?.reason.hasPrefix("check.minisign: ") == true)
        stage.origin.answers(.content("one"), Self.sums("one"), signature(of: "one", by: key))
        try stage.advance(60)
        try stage.fire("reload")
        #expect(stage.store.text == "one")
    }

    // MARK: Programs

    @Test("A program sees what would become the copy, after all else; what it does not accept is refused")
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
        #expect(stage.store.text == "ONE" && stage.status.refused?.digest == "TWO")
        // What another check refuses it does not see.
        stage.origin.answers(.content("x"))
        try stage.advance(60)
        try stage.fire("reload")
        #expect(Set(inspector.state.withLock { $0.looked }) == ["test /check x: ONE", "test /check x: TWO"])
    }

    @Test("A program that could not say refuses nothing, and lets nothing pass")
    func programFails() throws {
        let inspector = ScriptedInspector()
        inspector.state.withLock { $0.failure = RunFailure(.local, "not run") }
        let stage = try stage({ $0.exec = InspectionRule(["/check"]) }, inspector: inspector)
        try run(stage, .long("one"))
        #expect(stage.store.text == nil && stage.status.refused == nil)
        #expect(stage.status.failing?.failure.message == "check.exec: not run")
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
    }

    @Test("Where nobody can make a check, nothing passes it")
    func nobody() throws {
        for check: (inout CheckRules) -> Void in [
            { $0.sha256 = ChecksumRule(list: Self.list) }, { $0.exec = InspectionRule(["/check"]) },
        ] {
            var rules = CheckRules()
            check(&rules)
            let stage = try Stage(check: rules)
            try run(stage, .content("one"))
            #expect(stage.store.text == nil && stage.status.refused == nil)
        }
    }
}

extension ScriptedOrigin.Answer {
    /// Of one that has a content.
    fileprivate var text: String {
        if case .content(let text, _, _) = self { text } else { "" }
    }
}
