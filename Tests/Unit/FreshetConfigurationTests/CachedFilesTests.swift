import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("cache.files")
struct CachedFilesTests {
    private func text(_ cache: String, _ more: String = "") -> String {
        "source: {url: https://id.example.com/jwks}\ncache: {file: all, \(cache)}\n\(more)"
    }

    @Test("names files and the programs that make them, in whatever order they stand")
    func read() throws {
        let cache = try #require(load(pipeline: text("files: {keys.json: .keys, a b: '.b'}")).pipelines.first?.cache)
        #expect(cache.files == [CachedFile("a b", by: ".b"), CachedFile("keys.json", by: ".keys")])
        #expect(cache.readerFile == "all.stamp")
        #expect(load(pipeline: pipeline()).pipelines.first?.cache.readerFile == "jwks.json")
        let programs = load(pipeline: text("files: {keys.json: .keys}", "transform: .x\n")).pipelines.first?.programs
        #expect(programs?.map(\.text) == [".x", ".keys"])
    }

    @Test(
        "Faults have their place and a remedy",
        arguments: [
            (
                "files: keys.json",
                "2:27: error: 'files' has to hold names with jq programs, not text; write files: {keys.json: .keys, "
                    + "issuer.txt: .issuer}"
            ),
            (
                "files: {}",
                "2:27: error: 'files' names no file; write files: {keys.json: .keys, issuer.txt: .issuer}, or leave it "
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
                "2:44: error: with 'files' there is no 'format: text'; leave it out: a program whose output is a string "
                    + "makes a text (see jwks.yaml:2:20)"
            ),
            (
                "files: {x: .x}, key: .id",
                "2:41: error: with 'files' there is no 'key'; leave it out: the copy is an object with all files, and no "
                    + "list; a file that is one can have a pipeline of its own, by 'source: {pipeline: …}' (see "
                    + "jwks.yaml:2:20)"
            ),
        ])
    func wrongValues(cache: String, expected: String) {
        #expect(faults(text(cache)) == ["jwks.yaml:\(expected)"])
    }

    @Test("A form of the copy that is not JSON is none of several files")
    func form() {
        #expect(
            faults(text("files: {x: .x}", "check: {format: pem}\n")) == [
                "jwks.yaml:3:17: error: 'pem' is not what 'cache.files' makes; leave it out: checks see one JSON object "
                    + "with a member for each file"
            ])
        #expect(faults(text("files: {x: .x}", "check: {format: json}\n")) == [])
    }

    @Test("There are at most 100 files, whose programs have at most 60 KiB together")
    func limits() {
        func files(_ count: Int) -> String { (0..<count).map { "f\($0): .a" }.joined(separator: ", ") }
        #expect(faults(text("files: {\(files(CachedFile.perPipeline))}")) == [])
        #expect(
            faults(text("files: {\(files(CachedFile.perPipeline + 1))}")) == [
                "jwks.yaml:2:20: error: 'files' has more than 100 files; give the others a pipeline of their own"
            ])
        func program(_ bytes: Int) -> String { "." + String(repeating: "a", count: bytes - 1) }
        // What is around them is part of the program.
        let most = CachedFile.programBytes - [CachedFile("x", by: "")].program.utf8.count
        #expect(faults(text("files: {x: \(program(most))}")) == [])
        #expect(
            faults(text("files: {x: \(program(most + 1))}")) == [
                "jwks.yaml:2:20: error: 'files' has more than 60K of programs; do what they have in common in 'transform'"
            ])
    }

    @Test("The link's name and the stamp's are the pipeline's alone")
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
                "a.yaml:2:15: error: 'all.stamp' is the cache file of pipeline 'b' too; give each its own (see "
                    + "b.yaml:2:15)",
                "b.yaml:2:15: error: 'all.stamp' is the cache file of pipeline 'a' too; give each its own (see "
                    + "a.yaml:2:15)",
            ])
        #expect(found("file: all").count == 2)
        #expect(found("file: all, files: {y: .y}").count == 2)
        #expect(found("file: stamp") == [])
    }

    @Test("Another pipeline reads the stamp, which has all files")
    func upstream() {
        let configuration = load([
            "pipelines/a.yaml": "source: {file: /a}\ncache: {file: all, files: {x: .x}}\n",
            "pipelines/b.yaml": "source: {pipeline: a}\ncache: {file: b}\n",
        ])
        #expect(configuration.pipelines.first { $0.name == "b" }?.source == .copy(of: "a", file: "all.stamp"))
    }

    @Test("A program that jq does not understand is a fault at its place")
    func programFault() {
        let loader = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/c"]),
            fileSystem: InMemoryFileSystem(texts: ["/c/pipelines/a.yaml": text("files: {keys.json: '.a['}")]))
        let refused = loader.refusing(
            [ProgramError(pipeline: "a", program: ".a[", message: "no end")], in: loader.load())
        #expect(
            refused.diagnostics.map { $0.text() } == [
                """
                /c/pipelines/a.yaml:2:39: error: 'keys.json' is not a program that jq understands: no end
                    2 | cache: {file: all, files: {keys.json: '.a['}}
                      |                                       ^
                """
            ])
    }
}
