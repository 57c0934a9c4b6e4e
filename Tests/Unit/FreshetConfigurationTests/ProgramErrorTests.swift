import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Programs with faults")
struct ProgramErrorTests {
    func refusing(_ faults: [ProgramError], _ texts: [String: String]) -> Configuration {
        let loader = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/c"]), fileSystem: InMemoryFileSystem(texts: texts))
        return loader.refusing(faults, in: loader.load())
    }

    let texts = [
        "/c/pipelines/a.yaml": pipeline("transform: '.a['", "check: {jq: .ok}"),
        "/c/pipelines/b.yaml": "source: {file: /b, transform: .b}\ncache: {file: b}\n",
        "/c/pipelines/b.yaml.d/x.yaml": "check: {jq: '.x['}\n",
        "/c/pipelines/c.yaml": "source: {file: /c, transform: '.c['}\ncache: {file: c}\n",
    ]

    @Test("The fault stands where the program does, in the drop-in that counts too; other pipelines stay")
    func places() {
        let configuration = refusing(
            [
                ProgramError(pipeline: "a", program: ".a[", message: "no end"),
                ProgramError(pipeline: "b", program: ".x[", message: "no end"),
            ], texts)
        #expect(
            configuration.diagnostics.map { $0.text() } == [
                """
                /c/pipelines/a.yaml:3:12: error: 'transform' is not a program that jq understands: no end
                    3 | transform: '.a['
                      |            ^
                """,
                """
                /c/pipelines/b.yaml.d/x.yaml:1:13: error: 'jq' is not a program that jq understands: no end
                    1 | check: {jq: '.x['}
                      |             ^
                """,
            ])
        #expect(!configuration.isSound)
        #expect(configuration.pipelines.map(\.name) == ["c"])
        #expect(configuration.faulty.keys.sorted() == ["a", "b"])
    }

    @Test("A transform of the source is found as well")
    func sourceTransform() {
        let configuration = refusing([ProgramError(pipeline: "c", program: ".c[", message: "no end")], texts)
        #expect(
            configuration.faulty["c"]?.map { $0.text() } == [
                """
                /c/pipelines/c.yaml:1:31: error: 'transform' is not a program that jq understands: no end
                    1 | source: {file: /c, transform: '.c['}
                      |                               ^
                """
            ])
    }

    @Test("A program that is not in the files any more is still a fault")
    func changed() {
        let configuration = refusing([ProgramError(pipeline: "c", program: ".old[", message: "no end")], texts)
        #expect(
            configuration.diagnostics.map { $0.text() } == [
                "/c/pipelines/c.yaml: error: a jq program has a fault: no end"
            ])
        #expect(configuration.pipelines.map(\.name) == ["a", "b"])
    }
}
