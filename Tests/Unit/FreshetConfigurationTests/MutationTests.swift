import ConfigurationTestSupport
import TestSupport
import Testing

@testable import FreshetConfiguration

@Suite("Mutated files")
struct MutationTests {
    private static let original = """
        format: 1
        description: "Schlüssel – 漢字"
        source:
          url: https://id.example.com/jwks?a=1
          headers: {Accept: application/json, Authorization: 'Bearer x'}
        refresh:
          on: [start, network]
          every: 15min
          retry: {from: 1s, to: 5min}
        check:
          jq: |
            .keys
            | length > 0
          max-bytes: 64M
        cache: {file: jwks.json, mode: "0644"}

        """

    private static let dropIn = "refresh: {every: 1h, quiet: null}\ncache:\n  keep: 3\n"

    private static let splices: [String] = [
        "\t", "\n", "\r", ":", ": ", "- ", "[", "]", "{", "}", "\"", "'", "&a ", "*a", "!!x ", "|", ">", "%", "@", "#",
        "---\n", "...\n", "<<: ", "? ", "null", "\0", "\u{85}", "\u{2028}", "\u{FEFF}", "\u{301}", "漢", "\\x",
        "\\u0000",
        "99999999999999999999", "-", "infinity", "yes", "{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{", "every",
    ]

    private func mutated(_ text: String, using random: inout SeededGenerator) -> [UInt8] {
        var bytes = Array(text.utf8)
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let place = Int.random(in: 0...bytes.count, using: &random)
            let end = min(bytes.count, place + Int.random(in: 0...12, using: &random))
            switch Int.random(in: 0..<5, using: &random) {
            case 0: bytes.removeSubrange(place..<end)
            case 1: bytes.insert(UInt8.random(in: 0...255, using: &random), at: place)
            case 2: bytes.insert(contentsOf: bytes[place..<end], at: Int.random(in: 0...place, using: &random))
            case 3: bytes.removeSubrange(place...)
            default:
                guard let splice = Self.splices.randomElement(using: &random) else { continue }
                bytes.insert(contentsOf: splice.utf8, at: place)
            }
        }
        return bytes
    }

    @Test("a mutated file gives a valid pipeline or an error with a location, and never a crash", arguments: 0..<8)
    func mutations(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var valid = 0
        for _ in 0..<500 {
            let file = "/c/pipelines/x.yaml"
            let dropIn = "/c/pipelines/x.yaml.d/y.yaml"
            let texts = [
                file: mutated(Self.original, using: &random),
                dropIn: Bool.random(using: &random) ? Array(Self.dropIn.utf8) : mutated(Self.dropIn, using: &random),
            ]
            let configuration = ConfigurationLoader(
                searchPath: SearchPath(directories: ["/c"]),
                fileSystem: InMemoryFileSystem(texts.mapValues { .bytes($0) })
            ).load()
            #expect(configuration.pipelines.count + configuration.invalid.count == 1)
            #expect(configuration.pipelines.isEmpty != configuration.isValid)
            valid += configuration.pipelines.count
            for diagnostic in configuration.diagnostics {
                let line = try #require(diagnostic.line)
                let column = try #require(diagnostic.column)
                let bytes = try #require(texts[diagnostic.file])
                let text = try #require(SourceText(file: diagnostic.file, bytes: bytes).line(line))
                #expect((1...(text.count + 1)).contains(column))
                if let excerpt = diagnostic.excerpt {
                    #expect((0...excerpt.text.unicodeScalars.count).contains(excerpt.caret))
                }
                let rendered = diagnostic.text().split(separator: "\n", omittingEmptySubsequences: false)
                #expect(rendered.count == (diagnostic.excerpt == nil ? 1 : 3))
            }
        }
        // Valid and invalid files must both occur, or the test is too weak.
        #expect((10...490).contains(valid), "\(valid)")
    }

    private static let hook = """
        format: 1
        on-change-of: [x, 'y']
        exec: [/usr/lib/a, "b c"]
        quiet: 5s
        limit: {group: g, at-once: 2}

        """

    @Test("a mutated hook of several pipelines is valid or has errors, and the pipelines stay", arguments: 0..<4)
    func hooks(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var valid = 0
        for _ in 0..<500 {
            var texts = ["/c/hooks/h.yaml": mutated(Self.hook, using: &random)]
            for name in ["x", "y"] {
                texts["/c/pipelines/\(name).yaml"] = Array("source: {file: /a}\ncache: {file: \(name)}\n".utf8)
            }
            let configuration = ConfigurationLoader(
                searchPath: SearchPath(directories: ["/c"]),
                fileSystem: InMemoryFileSystem(texts.mapValues { .bytes($0) })
            ).load()
            #expect(configuration.pipelines.count == 2 && configuration.isDaemonValid)
            #expect(configuration.hooks.count + configuration.invalidHooks.count == 1)
            #expect(configuration.hooks.isEmpty != configuration.isValid)
            valid += configuration.hooks.count
        }
        #expect((10...490).contains(valid), "\(valid)")
    }
}
