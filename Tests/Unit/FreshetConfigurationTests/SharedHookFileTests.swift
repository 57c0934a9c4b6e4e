import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The files of hooks of several pipelines")
struct SharedHookFileTests {
    private func files(_ hook: String, named name: String = "all", pipelines: [String] = ["a", "b"]) -> [String: String]
    {
        var files = ["hooks/\(name).yaml": hook]
        for pipeline in pipelines {
            files["pipelines/\(pipeline).yaml"] = "source: {file: /x}\ncache: {file: \(pipeline)}\n"
        }
        return files
    }

    private func errors(_ hook: String, pipelines: [String] = ["a", "b"]) -> [String] {
        let configuration = load(files(hook, pipelines: pipelines))
        #expect(configuration.hooks.isEmpty && configuration.pipelines.count == pipelines.count)
        #expect(!configuration.isValid && configuration.isDaemonValid)
        #expect(configuration.invalidHooks["all"] == configuration.diagnostics)
        return configuration.diagnostics.map { error in
            "\(error.line ?? 0):\(error.column ?? 0): \(error.message)" + (error.remedy.map { "; \($0)" } ?? "")
        }
    }

    @Test("a hook has pipelines, a command, and times with defaults")
    func read() throws {
        let configuration = load(files("on-change-of: [b, a]\nexec: [/x, '{y}']\n"))
        #expect(configuration.diagnostics.isEmpty && configuration.invalidHooks.isEmpty)
        let hook = try #require(configuration.hooks.first)
        #expect(hook == SharedHookDefinition("all", on: ["b", "a"], HookDefinition(["/x", "{y}"])))
        #expect(hook.quiet == .seconds(2) && hook.atMost == .seconds(10))
        #expect(configuration.hookFiles["all"]?.count == 1 && configuration.files.count == 2)
    }

    @Test("all keys")
    func all() throws {
        let text = """
            description: The shop
            on-change-of: a
            reload-unit: nginx.service
            quiet: 1min
            timeout: 5s
            splay: 7s
            limit: {group: g, at-once: 2}
            """
        let hook = try #require(load(files(text)).hooks.first)
        #expect(hook.description == "The shop" && hook.action.unit == "nginx.service")
        #expect(hook.quiet == .seconds(60) && hook.atMost == .seconds(60))
        #expect(hook.action.timeout == .seconds(5) && hook.action.splay == .seconds(7))
        #expect(hook.action.limit == HookLimit(group: "g", atOnce: 2))
    }

    @Test("drop-ins and masks work as for pipelines")
    func dropIns() {
        var texts = files("on-change-of: [a]\nexec: [/x]\n")
        texts["hooks/all.yaml.d/10.yaml"] = "on-change-of: [b]\nquiet: 0\n"
        texts["hooks/none.yaml.d/10.yaml"] = "quiet: 0\n"
        let configuration = load(texts)
        #expect(configuration.hooks.map(\.pipelines) == [["b"]] && configuration.hooks.first?.quiet == .zero)
        #expect(
            configuration.diagnostics.map(\.message) == [
                "this directory has drop-ins for hook 'none', which does not exist"
            ])
    }

    @Test("a name without a pipeline is an error that suggests the nearest one")
    func unknown() {
        let near = "there is no pipeline 'prics'; did you mean 'prices'?"
        #expect(errors("on-change-of: [prics]\nexec: [/x]\n", pipelines: ["prices"]) == ["1:16: \(near)"])
        #expect(
            errors("on-change-of:\n- a\n- zzzzzz\nexec: [/x]\n") == [
                "3:3: there is no pipeline 'zzzzzz'; 'on-change-of' takes the names of pipelines"
            ])
        #expect(
            errors("on-change-of: [a.yaml]\nexec: [/x]\n") == ["1:16: there is no pipeline 'a.yaml'; did you mean 'a'?"]
        )
    }

    @Test("a pipeline with errors exists")
    func invalidPipeline() {
        var texts = files("on-change-of: [a, b]\nexec: [/x]\n")
        texts["pipelines/b.yaml"] = "cache: {}\n"
        let configuration = load(texts)
        #expect(configuration.hooks.count == 1 && configuration.invalid.keys.sorted() == ["b"])
    }

    @Test("a repeated name, an empty list and missing keys are errors")
    func incomplete() {
        #expect(
            errors("on-change-of: [a, b, a]\nexec: [/x]\n") == [
                "1:22: 'on-change-of' names 'a' twice; remove one of them"
            ])
        let example = "name the pipelines after whose changes the hook runs: on-change-of: [prices, stock]"
        #expect(
            errors("on-change-of: []\nexec: [/x]\n") == ["1:15: 'on-change-of' is an empty list; \(example)"])
        #expect(errors("exec: [/x]\n") == ["1:1: 'on-change-of' is missing; \(example)"])
        #expect(
            errors("on-change-of: a\n") == [
                "1:1: a hook has no 'exec'; name the command: exec: [/usr/lib/program, argument]"
            ])
        #expect(
            errors("on-change-of: a\nexec: [/x]\nreload-unit: a.service\n") == [
                "3:1: a hook has 'exec' and 'reload-unit'; keep one of them, or write two files"
            ])
        #expect(
            errors("on-change-of: a\nexec: [/x]\nquiet: 1min\nat-most: 5s\n") == [
                "3:8: 'quiet' is longer than 'at-most', so it would have no effect; make 'at-most' at least as long"
            ])
        #expect(
            errors("on-change-of: a\nexec: [/x]\nquiet: 2h\n").first?.hasPrefix("3:8: 'quiet' has to be at most 1h")
                == true
        )
    }

    @Test("keys of other files are errors that say where they belong")
    func otherKeys() {
        #expect(
            errors("on-change-of: a\nexec: [/x]\ncache: {file: a}\n") == [
                "3:1: 'cache' belongs in a pipeline's own file or in freshet.yaml; move it there"
            ])
        #expect(
            errors("on-change-of: a\nexec: [/x]\nquite: 3s\n") == ["3:1: unknown key 'quite'; did you mean 'quiet'?"])
        let configuration = load(["pipelines/a.yaml": "source: {file: /x}\ncache: {file: a}\non-change-of: [b]\n"])
        #expect(
            configuration.diagnostics.first?.message
                == "'on-change-of' belongs in the file of a hook, hooks/NAME.yaml")
    }

    @Test("a name with other characters, and bytes that are not UTF-8, are errors")
    func badFiles() {
        let configuration = load(files("on-change-of: a\nexec: [/x]\n", named: "a b"))
        #expect(configuration.diagnostics.map(\.message) == ["'a b' is not a valid hook name"])
        #expect(configuration.invalidHooks.keys.sorted() == ["a b"])
        let files = InMemoryFileSystem([
            "/etc/hooks/all.yaml": .bytes([0x61, 0xff, 0xfe]), "/etc/hooks/big.yaml": .error(.tooLarge(limit: 1 << 20)),
        ])
        let path = SearchPath(directories: ["/etc"])
        let bad = ConfigurationLoader(searchPath: path, fileSystem: files).load()
        #expect(bad.invalidHooks.keys.sorted() == ["all", "big"] && bad.isDaemonValid && !bad.isValid)
        #expect(bad.diagnostics.map(\.message).contains { $0.contains("is not UTF-8") })
    }

    @Test("two numbers for one group are an error, also of a pipeline's hook and a hook of several")
    func limits() {
        var texts = files("on-change-of: a\nexec: [/x]\nlimit: {group: g, at-once: 2}\n")
        texts["pipelines/a.yaml"] =
            "source: {file: /x}\ncache: {file: a}\non-change: {exec: [/y], limit: {group: g, at-once: 1}}\n"
        let configuration = load(texts)
        #expect(configuration.hooks.isEmpty && configuration.pipelines.count == 2)
        let error = configuration.diagnostics.first
        #expect(error?.keyPath == "limit.at-once" && error?.message.contains("in pipeline 'a'") == true)
    }

    @Test("many unknown names are a limited number of errors")
    func manyErrors() {
        let names = (0..<9_000).map { "p\($0)" }.joined(separator: ",")
        let configuration = load(files("on-change-of: [\(names)]\nexec: [/x]\n"))
        #expect(configuration.diagnostics.count == ConfigurationLoader.maximumDiagnostics + 1)
        let more = (0...SharedHookDefinition.mostPipelines).map { "p\($0)" }.joined(separator: ",")
        #expect(
            load(files("on-change-of: [\(more)]\nexec: [/x]\n")).diagnostics.map(\.message) == [
                "'on-change-of' names more than 10000 pipelines"
            ])
    }

    @Test("recorded files give the same hooks")
    func recorded() {
        var texts = files("on-change-of: [a]\nexec: [/x]\n")
        texts["hooks/all.yaml.d/10.yaml"] = "quiet: 1s\n"
        texts["hooks/bad.yaml"] = "on-change-of: [c]\nexec: [/x]\n"
        let path = SearchPath(directories: ["/top"])
        let files = InMemoryFileSystem(
            texts: Dictionary(texts.map { ("/top/\($0.key)", $0.value) }) { first, _ in first })
        let read = ConfigurationLoader(searchPath: path, fileSystem: files).load()
        let recorded = ConfigurationLoader(searchPath: path, fileSystem: RecordedFileSystem(files, at: path)).load()
        #expect(recorded.hooks == read.hooks && read.hooks.first?.quiet == .seconds(1))
        #expect(recorded.invalidHooks == read.invalidHooks && read.invalidHooks.count == 1)
    }
}
