import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("cache.files")
struct CachedFilesTests {
    private func text(_ cache: String, _ more: String = "") -> String {
        "source: {url: https://id.example.com/jwks}\ncache: {file: all, \(cache)}\n\(more)"
    }

    @Test("files have names and programs, and are sorted by name")
    func read() throws {
        let cache = try #require(load(pipeline: text("files: {keys.json: .keys, a b: '.b'}")).pipelines.first?.cache)
        #expect(cache.files == [CachedFile("a b", by: ".b"), CachedFile("keys.json", by: ".keys")])
        #expect(cache.readerFile == "all.stamp")
        #expect(load(pipeline: pipeline()).pipelines.first?.cache.readerFile == "jwks.json")
        let programs = load(pipeline: text("files: {keys.json: .keys}", "transform: .x\n")).pipelines.first?.programs
        #expect(programs?.map(\.text) == [".x", ".keys"])
    }

    @Test(
        "errors have a location and a remedy",
        arguments: [
            (
                "files: keys.json",
                "2:27: error: 'files' has to contain names with jq programs, not text; write files: {keys.json: .keys, "
                    + "issuer.txt: .issuer}"
            ),
            (
                "files: {}",
                "2:27: error: 'files' is empty; write files: {keys.json: .keys, issuer.txt: .issuer}, or leave it "
                    + "out"
            ),
            (
                "files: {../x: .x}",
                "2:28: error: '../x' has to be a file name without '/'"
            ),
            ("files: {.x: .x}", "2:28: error: '.x' must not begin with a '.'"),
            ("files: {x: ' '}", "2:31: error: 'x' is an empty program; leave the key out"),
            (
                "files: {x: [.x]}",
                "2:31: error: 'x' has to be a jq program such as '.keys | length > 0', not a list"
            ),
            (
                "files: {x: .x}, format: text",
                "2:44: error: 'files' and 'format: text' exclude each other; leave 'format' out: a program that "
                    + "outputs a string makes a text file (see jwks.yaml:2:20)"
            ),
            (
                "files: {x: .x}, key: .id",
                "2:41: error: 'files' and 'key' exclude each other; leave 'key' out: the copy is an object with all "
                    + "files, not a list; another pipeline with 'source: {pipeline: …}' can have a 'key' for one of "
                    + "the files (see "
                    + "jwks.yaml:2:20)"
            ),
        ])
    func wrongValues(cache: String, expected: String) {
        #expect(errors(text(cache)) == ["jwks.yaml:\(expected)"])
    }

    @Test("check.format of a copy with several files must be JSON")
    func form() {
        #expect(
            errors(text("files: {x: .x}", "check: {format: pem}\n")) == [
                "jwks.yaml:3:17: error: 'format: pem' contradicts 'cache.files'; leave it out: the checks get one JSON "
                    + "object "
                    + "with a member for each file"
            ])
        #expect(errors(text("files: {x: .x}", "check: {format: json}\n")) == [])
    }

    @Test("there are at most 100 files, whose programs have at most 60 KiB together")
    func limits() {
        func files(_ count: Int) -> String { (0..<count).map { "f\($0): .a" }.joined(separator: ", ") }
        #expect(errors(text("files: {\(files(CachedFile.perPipeline))}")) == [])
        #expect(
            errors(text("files: {\(files(CachedFile.perPipeline + 1))}")) == [
                "jwks.yaml:2:20: error: 'files' has more than 100 files; move some of them to another pipeline"
            ])
        func program(_ bytes: Int) -> String { "." + String(repeating: "a", count: bytes - 1) }
        // The generated code around the programs counts too.
        let most = CachedFile.programBytes - [CachedFile("x", by: "")].program.utf8.count
        #expect(errors(text("files: {x: \(program(most))}")) == [])
        #expect(
            errors(text("files: {x: \(program(most + 1))}")) == [
                "jwks.yaml:2:20: error: the programs of 'files' are longer than 60K together; move the common parts to "
                    + "'transform'"
            ])
    }

    @Test("the names of link and stamp must differ from those of other pipelines")
    func names() {
        func found(_ other: String) -> [String] {
            texts(
                load([
                    "pipelines/a.yaml": "source: {file: /a}\ncache: {file: all, files: {x: .x}}\n",
                    "pipelines/b.yaml": "source: {file: /b}\ncache: {\(other)}\n",
                ]).diagnostics)
        }
        #expect(
            found("file: all.stamp") == [
                "a.yaml:2:15: error: 'all.stamp' is also the cache file of pipeline 'b'; give each pipeline its own "
                    + "'cache.file' (see "
                    + "b.yaml:2:15)",
                "b.yaml:2:15: error: 'all.stamp' is also the cache file of pipeline 'a'; give each pipeline its own "
                    + "'cache.file' (see "
                    + "a.yaml:2:15)",
            ])
        #expect(found("file: all").count == 2)
        #expect(found("file: all, files: {y: .y}").count == 2)
        #expect(found("file: stamp") == [])
    }

    @Test("another pipeline reads the stamp, which contains all files")
    func upstream() {
        let configuration = load([
            "pipelines/a.yaml": "source: {file: /a}\ncache: {file: all, files: {x: .x}}\n",
            "pipelines/b.yaml": "source: {pipeline: a}\ncache: {file: b}\n",
        ])
        #expect(configuration.pipelines.first { $0.name == "b" }?.source == .copy(of: "a", file: "all.stamp"))
    }

    @Test("an invalid jq program is an error at its location")
    func programError() {
        let loader = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/c"]),
            fileSystem: InMemoryFileSystem(texts: ["/c/pipelines/a.yaml": text("files: {keys.json: '.a['}")]))
        let rejected = loader.addingProgramErrors(
            [ProgramError(pipeline: "a", program: ".a[", message: "no end")], in: loader.load())
        #expect(
            rejected.diagnostics.map { $0.text() } == [
                """
                /c/pipelines/a.yaml:2:39: error: 'keys.json' is not a valid jq program: no end
                    2 | cache: {file: all, files: {keys.json: '.a['}}
                      |                                       ^
                """
            ])
    }
}
