import FreshetEventLoop
import FreshetJQ
import Testing

@testable import FreshetEmitters
@testable import FreshetPipelines

/// With a real helper process: what is tested is what jq makes of the programs put together.
@Suite("Several files: what a snapshot is split into")
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

    @Test("One object has them all, each by its own program, whatever that defines or ends with")
    func object() async {
        let text = await split(
            #"{"keys":[1,{"a":"x"}],"issuer":"me"}"#, CachedFile("keys.json", by: "def f: .keys; f # all of them"),
            CachedFile("issuer.txt", by: ".issuer + \"\\n\" | ., empty"), CachedFile("null", by: "null"))
        #expect(text == #"{"keys.json":[1,{"a":"x"}],"issuer.txt":"me\n","null":null}"# + "\n")
    }

    @Test("Of a text each program is given all of it as one string")
    func text() async {
        let lines = CachedFile("lines.json", by: #"split("\n")"#)
        #expect(await split("a\nb", as: .text, lines) == #"{"lines.json":["a","b"]}"# + "\n")
    }

    @Test("Names may have what means something to jq")
    func names() async {
        #expect(await split("7", CachedFile(#"a"b\(1)"#, by: ".")) == #"{"a\"b\\(1)":7}"# + "\n")
    }

    @Test("A program has one output, and the data is one JSON text")
    func faults() async {
        #expect(
            await split("[1,2]", CachedFile("a", by: ".[]")).hasSuffix(
                "'a' is to have one output, and has 2: [ ] around the program makes a list of them"))
        #expect(await split("[1,2]", CachedFile("a", by: "empty")).contains("'a' is to have one output, and has 0"))
        #expect(await split("1 2", CachedFile("a", by: ".")).contains("one JSON text, and there are more"))
        #expect(await split("", CachedFile("a", by: ".")).contains("one JSON text, and there is none"))
        #expect(await split("x", CachedFile("a", by: ".")).hasPrefix("cache.files: "))
    }

    @Test("As many files as there may be, with programs as long as they may be, are split at once")
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
