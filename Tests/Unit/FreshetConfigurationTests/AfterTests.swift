import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("refresh.after")
struct AfterTests {
    /// A configuration of pipelines, each with the value of `after`; nil omits the key.
    private func load(_ pipelines: KeyValuePairs<String, String?>) -> Configuration {
        var texts: [String: String] = [:]
        for (name, after) in pipelines {
            texts["pipelines/\(name).yaml"] =
                "source: {file: /x}\ncache: {file: \(name)}\n" + (after.map { "refresh: {after: \($0)}\n" } ?? "")
        }
        return FreshetConfigurationTests.load(texts)
    }

    private func errors(_ pipelines: KeyValuePairs<String, String?>) -> [String] {
        texts(load(pipelines).diagnostics)
    }

    @Test("after accepts a list of names or one name, and keeps their order")
    func names() throws {
        let configuration = load(["a": nil, "b": "a", "c": "[b, a]", "d": "[]", "0.1_x-Y": "[c]"])
        #expect(texts(configuration.diagnostics) == [])
        let after = Dictionary(
            configuration.pipelines.map { ($0.name, $0.refresh.after) }, uniquingKeysWith: { $1 })
        #expect(after == ["a": [], "b": ["a"], "c": ["b", "a"], "d": [], "0.1_x-Y": ["c"]])
    }

    @Test(
        "an invalid pipeline name is an error",
        arguments: [
            ("''", "'after' has to contain pipeline names, not ''"),
            (
                "a/b",
                "'after' has to contain pipeline names, "
                    + "not 'a/b'"
            ),
            (".a", "'after' has to contain pipeline names, not '.a'"),
            ("[a b]", "'after' has to contain pipeline names, not 'a b'"),
        ])
    func invalidName(text: String, message: String) {
        let column = text.hasPrefix("[") ? 19 : 18
        #expect(
            errors(["jwks": text]) == [
                "jwks.yaml:3:\(column): error: \(message); a pipeline has the name of its file, without the directory "
                    + "and '.yaml'"
            ])
    }

    @Test("a value of another kind is an error")
    func kind() {
        #expect(
            errors(["jwks": "{a: b}"]) == [
                "jwks.yaml:3:18: error: 'after' has to be a list of pipeline names such as [catalogue], not keys with "
                    + "values"
            ])
    }

    @Test("an unknown pipeline is an error at its location, with a suggestion")
    func unknown() {
        #expect(
            errors(["catalogue": nil, "prices": "[catalog, catalogue.yaml, elsewhere]"]) == [
                "prices.yaml:3:19: error: there is no pipeline 'catalog'; did you mean 'catalogue'?",
                "prices.yaml:3:28: error: there is no pipeline 'catalogue.yaml'; did you mean 'catalogue'?",
                "prices.yaml:3:44: error: there is no pipeline 'elsewhere'; 'after' takes the names of other pipelines",
            ])
        #expect(load(["catalogue": nil, "prices": "catalog"]).pipelines.map(\.name) == ["catalogue"])
        #expect(
            load(["catalogue": nil, "prices": "catalog"]).diagnostics.first?.excerpt?.text
                == "refresh: {after: catalog}")
    }

    @Test("after accepts an invalid pipeline, but not a masked one")
    func invalidAndMasked() {
        let invalid = FreshetConfigurationTests.load([
            "pipelines/a.yaml": "sorce: {}\n", "pipelines/b.yaml": "source: [",
            "pipelines/c.yaml": "source: {file: /x}\ncache: {file: c}\nrefresh: {after: [a, b]}\n",
        ])
        #expect(invalid.pipelines.map(\.name) == ["c"])
        #expect(invalid.invalid.keys.sorted() == ["a", "b"])
        var files = InMemoryFileSystem(texts: [
            "/usr/lib/freshet/pipelines/gone.yaml": "source: {file: /x}\ncache: {file: gone}\n",
            "/etc/freshet/pipelines/c.yaml": "source: {file: /x}\ncache: {file: c}\nrefresh: {after: gone}\n",
        ])
        files.entries["/etc/freshet/pipelines/gone.yaml"] = .mask
        let masked = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/etc/freshet", "/usr/lib/freshet"]), fileSystem: files
        ).load()
        #expect(
            texts(masked.diagnostics) == [
                "c.yaml:3:18: error: there is no pipeline 'gone'; 'after' takes the names of other pipelines"
            ])
    }

    @Test("errors of after are reported together with all others, also without a definition")
    func withOthers() {
        let configuration = FreshetConfigurationTests.load([
            "pipelines/a.yaml": "cache: {file: a}\nrefresh: {after: b, evry: 1}\n"
        ])
        #expect(configuration.diagnostics.map(\.keyPath) == ["source", "refresh.after", "refresh.evry"])
    }

    @Test("a duplicate name is a warning, and is used once")
    func twice() {
        let configuration = load(["a": nil, "b": "[a, a]"])
        #expect(
            texts(configuration.diagnostics) == [
                "b.yaml:3:22: warning: 'after' names 'a' twice; remove one of "
                    + "them"
            ])
        #expect(configuration.pipelines.last?.refresh.after == ["a"])
    }

    @Test("a pipeline that runs after itself is an error")
    func itself() {
        #expect(errors(["a": "[a]"]) == ["a.yaml:3:19: error: 'after' names this pipeline itself, 'a'; leave it out"])
    }

    @Test("after accepts 64 names, and the 65th is an error")
    func limit() {
        let names = (1...65).map { "p\($0)" }
        func load(_ count: Int) -> Configuration {
            var texts = ["pipelines/a.yaml": "source: {file: /x}\ncache: {file: a}\nrefresh:\n  after:\n"]
            for name in names.prefix(count) {
                texts["pipelines/a.yaml"]? += "  - \(name)\n"
                texts["pipelines/\(name).yaml"] = "source: {file: /x}\ncache: {file: \(name)}\n"
            }
            return FreshetConfigurationTests.load(texts)
        }
        #expect(load(64).pipelines.first?.refresh.after.count == 64)
        #expect(texts(load(64).diagnostics) == [])
        #expect(texts(load(65).diagnostics) == ["a.yaml:69:5: error: 'after' names more than 64 pipelines"])
    }

    @Test("the first 100 unknown names get a suggestion")
    func suggestions() {
        var order = PipelineOrder()
        for number in 100...200 {
            let place = Location(file: "p\(number).yaml", line: 1, column: 1)
            order.add("p\(number)", after: [Predecessor(name: "catalogue\(number)", location: place)])
        }
        let remedies = order.errors(among: ["catalogue"]).map(\.1.remedy)
        #expect(remedies.prefix(100).allSatisfy { $0 == "did you mean 'catalogue'?" })
        #expect(remedies.dropFirst(100) == ["'after' takes the names of other pipelines"])
    }

    // MARK: Cycles

    private static let remedy = "each pipeline has the previous one in its 'after': remove one of these names"

    @Test("a cycle is reported once, with its path; that pipeline is invalid, and the others run")
    func cycle() {
        let two = load(["a": "b", "b": "a"])
        #expect(
            texts(two.diagnostics) == ["a.yaml:3:18: error: 'after' makes a cycle: a → b → a; \(Self.remedy)"])
        #expect(two.pipelines.map(\.name) == ["b"])
        #expect(two.diagnostics.first?.excerpt?.text == "refresh: {after: b}")
        #expect(
            errors(["c": "[b]", "a": "[c]", "b": "[a]", "d": "[a, b]"]) == [
                "a.yaml:3:19: error: 'after' makes a cycle: a → b → c → a; \(Self.remedy)"
            ])
    }

    @Test("a cycle that is entered from outside is reported where it is entered")
    func entered() {
        #expect(
            errors(["a": nil, "m": "z", "z": "[a, m]"]) == [
                "z.yaml:3:22: error: 'after' makes a cycle: z → m → z; \(Self.remedy)"
            ])
    }

    @Test("two cycles are two errors, also if they share a pipeline")
    func several() {
        #expect(
            errors(["a": "[b, c]", "b": "a", "c": "a", "x": "y", "y": "x"]) == [
                "a.yaml:3:19: error: 'after' makes a cycle: a → b → a; \(Self.remedy)",
                "a.yaml:3:22: error: 'after' makes a cycle: a → c → a; \(Self.remedy)",
                "x.yaml:3:18: error: 'after' makes a cycle: x → y → x; \(Self.remedy)",
            ])
    }

    @Test("a diamond and a chain are not cycles")
    func noCycle() {
        #expect(errors(["a": nil, "b": "a", "c": "a", "d": "[b, c]", "e": "[d, a]"]) == [])
    }

    @Test("a message shows both ends of a long cycle, and chains may have any length")
    func long() {
        func texts(_ count: Int, closed: Bool) -> [String] {
            var order = PipelineOrder()
            for number in 0..<count {
                let place = Location(file: "p\(number).yaml", line: 3, column: 18)
                let before = number == 0 ? (closed ? count - 1 : nil) : number - 1
                order.add("p\(number)", after: before.map { [Predecessor(name: "p\($0)", location: place)] } ?? [])
            }
            return order.errors(among: (0..<count).map { "p\($0)" }).map(\.1.message)
        }
        #expect(
            texts(8, closed: true) == [
                "'after' makes a cycle: p0 → p1 → p2 → p3 → p4 → p5 → p6 → p7 → p0"
            ])
        #expect(
            texts(10, closed: true) == [
                "'after' makes a cycle: p0 → p1 → p2 → p3 → (2 more) → p6 → p7 → p8 → p9 → p0"
            ])
        #expect(texts(100_000, closed: false) == [])
        #expect(texts(100_000, closed: true).count == 1)
    }

    @Test("without the invalid pipelines there is no cycle, whatever the number of cycles", arguments: 0..<200)
    func broken(seed: UInt64) {
        var random = seed
        func next(_ bound: UInt64) -> UInt64 {
            // The generator of Knuth's MMIX; its high bits are the random ones.
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (random >> 33) % bound
        }
        let count = 2 + Int(next(7))
        var after: [Int: Set<Int>] = [:]
        for name in 0..<count {
            after[name] = Set((0..<next(4)).map { _ in Int(next(UInt64(count))) })
        }
        let text = { (name: Int) in "[" + (after[name] ?? []).sorted().map { "p\($0)" }.joined(separator: ", ") + "]" }
        var files: [String: String] = [:]
        for name in 0..<count {
            files["pipelines/p\(name).yaml"] =
                "source: {file: /x}\ncache: {file: p\(name)}\nrefresh: {after: \(text(name))}\n"
        }
        let configuration = FreshetConfigurationTests.load(files)
        var left = Dictionary(
            configuration.pipelines.map { ($0.name, Set($0.refresh.after)) }, uniquingKeysWith: { $1 })
        // Remove pipelines without remaining predecessors until none is left.
        while let free = left.first(where: { $0.value.isDisjoint(with: left.keys) }) { left[free.key] = nil }
        #expect(left == [:], "\(files)")
        let isValid = configuration.isValid
        var all = after
        while let free = all.first(where: { $0.value.isDisjoint(with: all.keys) }) { all[free.key] = nil }
        #expect(isValid == all.isEmpty, "\(files)")
    }
}
