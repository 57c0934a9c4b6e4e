import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Answers that are unpacked")
struct UnpackTests {
    private func stage(
        transform: String? = nil, _ check: CheckRules = CheckRules(), helpers: CheckHelpers = CheckHelpers(),
        unpacker: ScriptedUnpacker? = ScriptedUnpacker()
    ) throws -> Stage {
        let policy = RefreshPolicy(every: .seconds(3600), freshFor: .zero)
        var definition = Stage.definition(policy, transform: transform, check: check)
        definition.stage.unpack = .compressed(.gzip)
        return try Stage(definition, helpers: helpers, unpacker: unpacker)
    }

    private func run(_ stage: Stage, _ answers: ScriptedOrigin.Answer...) throws {
        for (place, answer) in answers.enumerated() { stage.origin.add(answer, first: place == 0) }
        try stage.start()
        try stage.fire("start")
    }

    private func failure(_ stage: Stage) -> String? { stage.status.failing?.failure.message }

    @Test(
        "the copy is the unpacked answer, the stored answer is removed, and an unchanged answer is not unpacked again")
    func copy() throws {
        let stage = try stage()
        try run(stage, .long("packed:one", tag: "v1"))
        #expect(stage.outcomes == [.changed] && stage.store.text == "one")
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
        stage.origin.answers(.version("packed:one", tag: "v1"))
        try stage.advance(3600)
        #expect(stage.origin.asked.map { $0.validators?.entityTag } == [nil, "v1"])
        #expect(stage.outcomes == [.changed, .unchanged])
    }

    @Test("programs and checks see the unpacked answer")
    func programs() throws {
        let stage = try stage(transform: "upper", CheckRules(minBytes: 4))
        try run(stage, .long("packed:five"))
        #expect(stage.store.text == "FIVE")
        stage.origin.answers(.content("packed:few"))
        try stage.advance(3600)
        #expect(failure(stage)?.hasPrefix("rejected by check.min-bytes: 3 bytes") == true)
        #expect(stage.store.text == "FIVE")
    }

    @Test("a checksum is that of the answer as received; a wrong one is reported rather than what else is wrong")
    func checksum() throws {
        var rules = CheckRules()
        rules.sha256 = ChecksumRule.list(HTTPSource(url: "https://example.com/SUMS", host: "example.com"))
        let stage = try stage(rules, helpers: CheckHelpers(verifier: ScriptedVerifier()))
        try run(
            stage, .content("packed:one", tag: "v1"), .content("\(ScriptedVerifier.sum(of: "packed:one"))  data\n"),
            .content("damaged"), .content("\(ScriptedVerifier.sum(of: "packed:two"))  data\n"))
        #expect(stage.outcomes == [.changed] && stage.store.text == "one")
        try stage.advance(3600)
        #expect(failure(stage)?.hasPrefix("check.sha256: the content has the checksum") == true)
    }

    @Test("an answer that cannot be unpacked fails with the step's name, and the copy stays")
    func failures() throws {
        let stage = try stage()
        try run(stage, .content("packed:one"), .long("page"))
        try stage.advance(3600)
        #expect(failure(stage) == "unpack: gzip: the answer is not gzip")
        #expect(stage.store.text == "one")
        #expect(stage.store.state.withLock { $0.bodies }.map(\.hasEnded) == [true])
    }

    @Test("the answer's media type is checked before it is unpacked")
    func type() throws {
        let stage = try stage(CheckRules(types: ["application/gzip"]))
        try run(stage, .content("page", type: "text/html"))
        #expect(failure(stage)?.hasPrefix("rejected by check.type: the answer is text/html") == true)
    }

    @Test("a program without the means to unpack fails and publishes nothing")
    func missing() throws {
        let stage = try stage(unpacker: nil)
        try run(stage, .content("packed:one"))
        #expect(failure(stage)?.contains("source.unpack cannot be evaluated by this program") == true)
        #expect(stage.store.text == nil)
    }
}
