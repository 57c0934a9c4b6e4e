import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Files that are recorded before they are parsed")
struct RecordedFilesTests {
    private static let path = SearchPath(directories: ["/draft", "/below"], mustExist: true)
    private static let pipeline = "source: {file: /a}\ncache: {file: a}\n"

    private static func configurations(
        of texts: [String: String]
    ) -> (recorded: Configuration, read: Configuration) {
        let files = InMemoryFileSystem(texts: texts)
        return (
            ConfigurationLoader(searchPath: path, fileSystem: RecordedFileSystem(files, at: path)).load(),
            ConfigurationLoader(searchPath: path, fileSystem: files).load()
        )
    }

    @Test("recorded files give the same configuration, including drop-ins, masks and errors")
    func same() {
        let (recorded, read) = Self.configurations(of: [
            "/draft/freshet.yaml": "concurrency: 3\n",
            "/draft/freshet.d/10-a.yaml": "concurrency: 4\n",
            "/draft/pipelines/a.yaml": Self.pipeline,
            "/draft/pipelines/a.yaml.d/10.yaml": "refresh: {every: 3h}\n",
            "/below/pipelines/a.yaml.d/20.yaml": "cache: {mode: '0640'}\n",
            "/below/pipelines/b.yaml": "source: {file: /b}\ncache: {fiel: b}\n",
            "/below/pipelines/c.yml": Self.pipeline,
        ])
        #expect(recorded.pipelines == read.pipelines && recorded.pipelines.count == 1)
        #expect(recorded.pipelines.first?.cache.mode == 0o640)
        #expect(recorded.daemon == read.daemon)
        #expect(recorded.diagnostics == read.diagnostics && !recorded.diagnostics.isEmpty)
        #expect(recorded.files == read.files)
    }

    @Test("a template beyond its limit is an error, as in a file that is read directly")
    func templateLimit() {
        let template = String(repeating: "a", count: TemplateDefinition.maxBytes + 1)
        let (recorded, read) = Self.configurations(of: [
            "/draft/pipelines/a.yaml": Self.pipeline + "transform: {template: a.mustache, escape: none}\n",
            "/draft/pipelines/a.mustache": template,
            "/below/freshet.yaml": "",
        ])
        #expect(recorded.diagnostics == read.diagnostics)
        #expect(recorded.diagnostics.first?.message.contains("larger than 64 KiB") == true)
        let copied = SubstitutingFileSystem(
            InMemoryFileSystem(texts: [:]), copies: ["/a.mustache": .success(.bytes(Array(template.utf8)))])
        #expect(throws: FileError.tooLarge(limit: 65_536)) { try copied.content(ofFile: "/a.mustache", limit: 65_536) }
    }

    @Test("a missing directory stays an error")
    func absent() {
        let (recorded, read) = Self.configurations(of: ["/draft/pipelines/a.yaml": Self.pipeline])
        #expect(recorded.diagnostics == read.diagnostics)
        #expect(recorded.diagnostics.map(\.message).contains("there is no such directory"))
    }
}
