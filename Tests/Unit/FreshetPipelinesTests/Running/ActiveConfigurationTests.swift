import Testing

@testable import FreshetPipelines

@Suite("The active configuration of a pipeline") struct ActiveConfigurationTests {
    private func definition(_ path: String, parameters: [ParameterDefinition] = []) -> PipelineDefinition {
        PipelineDefinition(
            name: "jwks", source: .file(path), cache: CacheRules(file: "jwks.json"), parameters: parameters)
    }

    @Test("its binding is that of its definition, also after another definition has replaced it")
    func binding() {
        var configuration = ActiveConfiguration(definition("/one"), remembered: [:])
        for _ in 1...2 { #expect(configuration.binding() == definition("/one").validatorBinding()) }
        _ = configuration.replace(by: definition("/two"))
        for _ in 1...2 { #expect(configuration.binding() == definition("/two").validatorBinding()) }
        #expect(configuration.binding() != definition("/one").validatorBinding())
    }

    @Test("it has no binding if the pipeline has parameters: their values belong to a run")
    func parameters() {
        let definition = definition("/one", parameters: [ParameterDefinition("query", default: "jazz")])
        var configuration = ActiveConfiguration(definition, remembered: [:])
        #expect(configuration.binding() == nil)
    }
}
