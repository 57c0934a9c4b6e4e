import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Copies that a template makes")
struct TemplateTests {
    private func stage(_ template: String, transform: String? = nil, _ check: CheckRules = CheckRules()) throws -> Stage
    {
        var definition = Stage.definition(
            RefreshPolicy(every: .seconds(3600), freshFor: .zero), transform: transform, check: check)
        definition.template = TemplateDefinition(template, in: "/t", escape: .none)
        return try Stage(definition)
    }

    @Test("the template gets the answer, or the output of the program, and the checks see the copy")
    func copy() throws {
        let plain = try stage("<{{.}}>", CheckRules(minBytes: 5))
        plain.origin.add(.content("abc"), first: true)
        try plain.start()
        try plain.fire("start")
        #expect(plain.store.text == "<abc>")
        plain.origin.answers(.content("ab"))
        try plain.advance(3600)
        #expect(plain.status.failing?.failure.message.hasPrefix("rejected by check.min-bytes: 4 bytes") == true)
        let both = try stage("<{{.}}>", transform: "upper")
        both.origin.add(.long("abc"), first: true)
        try both.start()
        try both.fire("start")
        #expect(both.store.text == "<ABC>", "a long answer is read back into memory")
    }

    @Test("an unchanged answer is requested again in full for another template")
    func otherTemplate() throws {
        let one = try stage("{{.}}1").definition.validatorBinding()
        #expect(try stage("{{.}}2").definition.validatorBinding() != one)
        #expect(try stage("{{.}}1").definition.validatorBinding() == one)
    }
}
