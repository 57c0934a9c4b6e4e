import FreshetEventLoop
import FreshetHelper
import Testing

@testable import FreshetEmitters
@testable import FreshetPipelines

/// With a real helper process, because the tests check how jq runs the combined program.
@Suite("Splitting a snapshot into several files")
struct FileSplitTests {
    let running: RunningLoop
    let transformer: JQTransformer

    init() throws {
        running = try RunningLoop()
        transformer = try JQTransformer.withRealHelper(running)
    }

    private func split(_ snapshot: String, as format: ContentFormat = .json, _ files: CachedFile...) async -> String {
        do throws(FetchError) {
            return String(
                decoding: try await transformer.split(Array(snapshot.utf8), in: format, into: files), as: UTF8.self)
        } catch {
            guard case .failed(let failure) = error, failure.kind == .content else { return "\(error)" }
            return failure.message
        }
    }

    @Test("One object contains all files, each made by its own program, also with definitions and comments")
    func object() async {
        let text = await split(
            #"{"keys":[1,{"a":"x"}],"issuer":"me"}"#, CachedFile("keys.json", by: "def f: .keys; f # all of them"),
            CachedFile("issuer.txt", by: ".issuer + \"\\n\" | ., empty"), CachedFile("null", by: "null"))
        #expect(text == #"{"keys.json":[1,{"a":"x"}],"issuer.txt":"me\n","null":null}"# + "\n")
    }

    @Test("Each program gets a text as one string")
    func text() async {
        let lines = CachedFile("lines.json", by: #"split("\n")"#)
        #expect(await split("a\nb", as: .text, lines) == #"{"lines.json":["a","b"]}"# + "\n")
    }

    @Test("Names may contain characters with a meaning in jq")
    func names() async {
        #expect(await split("7", CachedFile(#"a"b\(1)"#, by: ".")) == #"{"a\"b\\(1)":7}"# + "\n")
    }

    @Test("A program must have one output, and the data must be one JSON text")
    func errors() async {
        #expect(
            await split("[1,2]", CachedFile("a", by: ".[]")).hasSuffix(
                "'a' must have one output, and has 2; [ ] around the program makes a list of them"))
        #expect(await split("[1,2]", CachedFile("a", by: "empty")).contains("'a' must have one output, and has 0"))
        #expect(await split("1 2", CachedFile("a", by: ".")).contains("one JSON text, but the program made several"))
        #expect(await split("", CachedFile("a", by: ".")).contains("one JSON text, but the program made nothing"))
        #expect(await split("x", CachedFile("a", by: ".")).hasPrefix("cache.files: "))
    }

    @Test("The most files with the longest programs are split in one request")
    func limit() async {
        let files = (0..<CachedFile.perPipeline).map { number in
            CachedFile(String(repeating: "\"", count: 80) + "\(number)", by: "." + String(repeating: " ", count: 420))
        }
        #expect(files.program.utf8.count > CachedFile.programBytes - 2048)
        #expect(files.program.utf8.count <= CachedFile.programBytes)
        do {
            let text = try await transformer.split(Array("1".utf8), in: .json, into: files)
            #expect(text.count > 100 * 100)
        } catch {
            Issue.record("\(error)")
        }
    }
}
