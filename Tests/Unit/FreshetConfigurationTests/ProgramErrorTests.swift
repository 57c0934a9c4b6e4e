import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Programs with errors")
struct ProgramErrorTests {
    func addingProgramErrors(_ errors: [ProgramError], _ texts: [String: String]) -> Configuration {
        let loader = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/c"]), fileSystem: InMemoryFileSystem(texts: texts))
        return loader.addingProgramErrors(errors, in: loader.load())
    }

    let texts = [
        "/c/pipelines/a.yaml": pipeline("transform: '.a['", "check: {jq: .ok}"),
        "/c/pipelines/b.yaml": "source: {file: /b, transform: .b}\ncache: {file: b}\n",
        "/c/pipelines/b.yaml.d/x.yaml": "check: {jq: '.x['}\n",
        "/c/pipelines/c.yaml": "source: {file: /c, transform: '.c['}\ncache: {file: c}\n",
    ]

    @Test("the error is at the location of the program, also in a drop-in; other pipelines stay valid")
    func places() {
        let configuration = addingProgramErrors(
            [
                ProgramError(pipeline: "a", program: ".a[", message: "no end"),
                ProgramError(pipeline: "b", program: ".x[", message: "no end"),
            ], texts)
        #expect(
            configuration.diagnostics.map { $0.text() } == [
                """
                /c/pipelines/a.yaml:3:12: error: 'transform' is not a valid jq program: no end
                    3 | transform: '.a['
                      |            ^
                """,
                """
                /c/pipelines/b.yaml.d/x.yaml:1:13: error: 'jq' is not a valid jq program: no end
                    1 | check: {jq: '.x['}
                      |             ^
                """,
            ])
        #expect(!configuration.isValid)
        #expect(configuration.pipelines.map(\.name) == ["c"])
        #expect(configuration.invalid.keys.sorted() == ["a", "b"])
    }

    @Test("a transform of the source is found too")
    func sourceTransform() {
        let configuration = addingProgramErrors([ProgramError(pipeline: "c", program: ".c[", message: "no end")], texts)
        #expect(
            configuration.invalid["c"]?.map { $0.text() } == [
                """
                /c/pipelines/c.yaml:1:31: error: 'transform' is not a valid jq program: no end
                    1 | source: {file: /c, transform: '.c['}
                      |                               ^
                """
            ])
    }

    @Test("a program that is no longer in the files is still an error")
    func changed() {
        let configuration = addingProgramErrors(
            [ProgramError(pipeline: "c", program: ".old[", message: "no end")], texts)
        #expect(
            configuration.diagnostics.map { $0.text() } == [
                "/c/pipelines/c.yaml: error: a jq program is not valid: no end"
            ])
        #expect(configuration.pipelines.map(\.name) == ["a", "b"])
    }
}
