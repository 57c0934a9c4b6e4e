import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The search path")
struct SearchTests {
    private static let directories = ["/etc/freshet", "/run/freshet-config", "/usr/lib/freshet"]

    private func load(_ entries: [String: InMemoryFileSystem.Entry], mustExist: Bool = false) -> Configuration {
        ConfigurationLoader(
            searchPath: SearchPath(directories: Self.directories, mustExist: mustExist),
            fileSystem: InMemoryFileSystem(entries)
        ).load()
    }

    private func text(_ text: String) -> InMemoryFileSystem.Entry { .bytes(Array(text.utf8)) }

    private func file(_ path: String) -> InMemoryFileSystem.Entry {
        text("source: {file: \(path)}\ncache: {file: x}\n")
    }

    @Test("flags take precedence over the environment's directory, and that over the system's path")
    func choice() {
        #expect(SearchPath(flags: [], configurationDirectory: nil) == .system)
        #expect(SearchPath(flags: [], configurationDirectory: "/etc/freshet/") == .system)
        #expect(
            SearchPath(flags: [], configurationDirectory: "/home/a/.config/freshet:/srv/f").directories
                == ["/home/a/.config/freshet", "/srv/f"])
        let flags = SearchPath(flags: ["./etc/", "/"], configurationDirectory: "/srv/f", own: "/home/a/own")
        #expect(flags.directories == ["./etc", "/"])
        #expect(flags.mustExist)
    }

    @Test("a user's own directory is used only without flags and environment")
    func own() {
        let own = SearchPath(flags: [], configurationDirectory: nil, own: "/home/a/.config/freshet/")
        #expect(own == SearchPath(directories: ["/home/a/.config/freshet"]))
        #expect(SearchPath(flags: [], configurationDirectory: "", own: "/o").directories == ["/o"])
        #expect(SearchPath(flags: [], configurationDirectory: "/etc/freshet", own: "/o") == .system)
        #expect(SearchPath(flags: [], configurationDirectory: "/srv/f", own: "/o").directories == ["/srv/f"])
        #expect(SearchPath(flags: [], configurationDirectory: nil, own: nil) == .system)
    }

    @Test("a path is the system's if all its directories are")
    func systems() {
        #expect(SearchPath.system.isSystemPath)
        #expect(SearchPath(flags: ["/etc/freshet/", "/usr/lib/freshet"], configurationDirectory: nil).isSystemPath)
        #expect(!SearchPath(flags: ["/etc/freshet", "/srv/f"], configurationDirectory: nil).isSystemPath)
        #expect(!SearchPath(flags: [], configurationDirectory: nil, own: "/o").isSystemPath)
        #expect(SearchPath.system.text == "/etc/freshet, /run/freshet-config, /usr/lib/freshet")
    }

    @Test("a file replaces files of its name in later directories")
    func replacing() {
        let configuration = load([
            "/usr/lib/freshet/pipelines/a.yaml": file("/lib"), "/run/freshet-config/pipelines/a.yaml": file("/run"),
            "/usr/lib/freshet/pipelines/b.yaml": text("source: {file: /b}\ncache: {file: b}\n"),
        ])
        #expect(configuration.pipelines.map(\.source) == [.file("/run"), .file("/b")])
        #expect(
            configuration.files == [
                "a": ["/run/freshet-config/pipelines/a.yaml"], "b": ["/usr/lib/freshet/pipelines/b.yaml"],
            ])
    }

    @Test("a link to the null device hides files of its name and their drop-ins")
    func masking() {
        let configuration = load([
            "/usr/lib/freshet/pipelines/a.yaml": file("/lib"), "/etc/freshet/pipelines/a.yaml": .mask,
            "/etc/freshet/pipelines/a.yaml.d/x.yaml": text("zebra: 1"),
        ])
        #expect(configuration.pipelines.isEmpty)
        #expect(configuration.files.isEmpty)
        #expect(configuration.diagnostics.isEmpty)
    }

    @Test("drop-ins of all directories are merged by file name; the first of a name is used, and a mask hides it")
    func dropIns() {
        let base = "/usr/lib/freshet/pipelines/a.yaml"
        let configuration = load([
            base: text("source: {file: /x}\nrefresh: {every: 1h, on: [start, network]}\ncache: {file: x, keep: 2}\n"),
            "\(base).d/10-a.yaml": text("refresh: {every: 2h, quiet: 1s}\n"),
            "/etc/freshet/pipelines/a.yaml.d/20-b.yaml": text("refresh: {on: [resume], quiet: null}\n"),
            "/run/freshet-config/pipelines/a.yaml.d/10-a.yaml": text("refresh: {every: 3h}\ncache: {mode: '0640'}\n"),
            "\(base).d/30-c.yaml": text("description: hidden\n"),
            "/run/freshet-config/pipelines/a.yaml.d/30-c.yaml": .mask,
            "\(base).d/.hidden.yaml": text("zebra: 1\n"),
            "\(base).d/40.yaml~": text("zebra: 1\n"),
        ])
        #expect(texts(configuration.diagnostics) == [])
        #expect(
            configuration.pipelines == [
                PipelineDefinition(
                    name: "a", source: .file("/x"), refresh: RefreshPolicy(on: [.resume], every: .seconds(10_800)),
                    cache: CacheRules(file: "x", mode: 0o640, keep: 2))
            ])
        #expect(
            configuration.files["a"] == [
                base, "/run/freshet-config/pipelines/a.yaml.d/10-a.yaml", "/etc/freshet/pipelines/a.yaml.d/20-b.yaml",
            ])
    }

    @Test("after merging, an error points to the file that has it")
    func places() {
        let configuration = load([
            "/etc/freshet/pipelines/a.yaml": text("source: {file: /x}\ncache: {file: x}\nrefresh:\n  every: soon\n"),
            "/etc/freshet/pipelines/a.yaml.d/b.yaml": text("# changed\nrefresh:\n  quiet: late\n  evry: null\n"),
            "/etc/freshet/pipelines/a.yaml.d/c.yaml": text("source: {url: 'http://a.example/'}\n"),
        ])
        #expect(
            texts(configuration.diagnostics)
                == [
                    "a.yaml:1:10: error: 'file' and 'url' exclude each other; keep one; a drop-in removes the other "
                        + "with "
                        + "'url: null' (see a.yaml.d/c.yaml:1:10)",
                    "a.yaml:4:10: error: 'every' has to be a duration such as 15min, not 'soon'",
                    "a.yaml.d/b.yaml:3:10: error: 'quiet' has to be a duration such as 15min, not 'late'",
                    "a.yaml.d/b.yaml:4:3: error: unknown key 'evry'; did you mean 'every'?",
                ])
        #expect(configuration.invalid["a"]?.count == 4)
    }

    @Test("a drop-in can replace the kind of source")
    func sourceChange() {
        let configuration = load([
            "/usr/lib/freshet/pipelines/a.yaml": file("/x"),
            "/etc/freshet/pipelines/a.yaml.d/b.yaml": text("source: {file: null, exec: [/bin/true]}\n"),
        ])
        #expect(configuration.pipelines.map(\.source) == [.command(["/bin/true"])])
    }

    @Test("an invalid drop-in is reported, and keys that it may contain are not reported as missing")
    func brokenDropIn() {
        let configuration = load([
            "/etc/freshet/pipelines/a.yaml": text("source: {file: /x}\nevry: 1\n"),
            "/etc/freshet/pipelines/a.yaml.d/b.yaml": text("cache: {file: x\n"),
        ])
        #expect(
            configuration.diagnostics.map(\.message) == [
                "unknown key 'evry'",
                "this is not YAML: did not find expected ',' or '}' while parsing a flow mapping that begins in line 1",
            ])
    }

    @Test("null removes a key only in drop-ins; in a file it is a missing value")
    func null() {
        let configuration = load(["/etc/freshet/pipelines/a.yaml": text("source: {file: /x}\ncache: {file: null}\n")])
        #expect(configuration.diagnostics.map(\.message) == ["'file' has no value"])
    }

    @Test("the daemon's file, its drop-ins and their masks follow the same rules, and are optional")
    func daemon() {
        #expect(load([:]).daemon == DaemonDefinition())
        #expect(load([:]).isValid)
        let configuration = load([
            "/usr/lib/freshet/freshet.yaml": text("splay: 1min\nconcurrency: 5\n"),
            "/run/freshet-config/freshet.d/b.yaml": text("format: 1\nconcurrency: 7\n"),
            "/etc/freshet/freshet.d/a.yaml": text("concurrency: 6\nnetwork-target: 2001:db8::7\n"),
            "/usr/lib/freshet/freshet.d/a.yaml": text("splay: 9min\n"),
        ])
        #expect(configuration.isValid)
        #expect(
            configuration.daemon
                == DaemonDefinition(splay: .seconds(60), concurrency: 7, networkTarget: "2001:db8::7"))
        #expect(
            configuration.daemonFiles == [
                "/usr/lib/freshet/freshet.yaml", "/etc/freshet/freshet.d/a.yaml",
                "/run/freshet-config/freshet.d/b.yaml",
            ])
        let masked = load([
            "/usr/lib/freshet/freshet.yaml": text("splay: 1min\n"), "/etc/freshet/freshet.yaml": .mask,
            "/etc/freshet/freshet.d/a.yaml": text("concurrency: 6\n"),
        ])
        #expect(masked.daemon == DaemonDefinition(concurrency: 6))
    }

    @Test("another format is one error, and the rest of the file is not checked")
    func format() {
        let configuration = load(["/etc/freshet/pipelines/a.yaml": text("format: 2\nzebra: 1\n")])
        #expect(configuration.diagnostics.map(\.message) == ["this version reads only format 1"])
        #expect(configuration.invalid.keys.sorted() == ["a"])
    }

    @Test("an invalid pipeline does not affect others")
    func invalid() {
        let configuration = load([
            "/etc/freshet/pipelines/a.yaml": file("/x"), "/etc/freshet/pipelines/b.yaml": text("zebra: ["),
        ])
        #expect(configuration.pipelines.map(\.name) == ["a"])
        #expect(configuration.invalid.keys.sorted() == ["b"])
        #expect(configuration.isDaemonValid)
        #expect(!configuration.isValid)
    }

    @Test("an unreadable file is an error that names the user, and a file in a later directory does not replace it")
    func unreadable() {
        let forbidden = InMemoryFileSystem.Entry.error(.forbidden(to: "freshet", reason: "Permission denied"))
        let configuration = load([
            "/etc/freshet/pipelines/a.yaml": forbidden, "/usr/lib/freshet/pipelines/a.yaml": file("/x"),
            "/run/freshet-config/pipelines": forbidden,
        ])
        let message =
            "error: the user 'freshet' may not read this: Permission denied; give this user permission to read it and "
            + "to search the directories above it (chown, chmod)"
        #expect(
            configuration.diagnostics.map { $0.text() } == [
                "/etc/freshet/pipelines/a.yaml: \(message)", "/run/freshet-config/pipelines: \(message)",
            ])
        #expect(configuration.invalid.keys.sorted() == ["a"])
        // The unreadable directory may contain pipelines.
        #expect(!configuration.isDaemonValid)
    }

    @Test("a directory of --config-dir must exist; the system's need not")
    func missingDirectory() {
        #expect(load([:], mustExist: true).diagnostics.map(\.file) == Self.directories)
        #expect(load(["/etc/freshet": .emptyDirectory], mustExist: true).diagnostics.count == 2)
    }

    @Test("a file name that is not a valid pipeline name is an error; a name has at most 64 bytes")
    func names() {
        let long = String(repeating: "n", count: 64)
        let configuration = load([
            "/etc/freshet/pipelines/a b.yaml": file("/x"), "/etc/freshet/pipelines/-a.yaml": file("/x"),
            "/etc/freshet/pipelines/\(long).yaml": file("/x"), "/etc/freshet/pipelines/\(long)n.yaml": file("/x"),
        ])
        #expect(configuration.pipelines.map(\.name) == [long])
        #expect(
            configuration.diagnostics.map(\.message) == [
                "'-a' is not a valid pipeline name", "'a b' is not a valid pipeline name",
                "the pipeline name is longer than 64 bytes",
            ])
    }

    @Test("files that are probably skipped by mistake get a warning")
    func misnamed() {
        let configuration = load([
            "/etc/freshet/pipelines/a.yml": file("/x"), "/etc/freshet/pipelines/b.yaml.d/c.yaml": text("x: 1"),
            "/etc/freshet/pipelines/README": text("x"), "/etc/freshet/pipelines/.c.yaml": text("["),
            "/etc/freshet/freshet.yaml.d/10-room.yaml": text("splay: 1min"),
        ])
        #expect(configuration.diagnostics.map(\.severity) == [.warning, .warning, .warning])
        #expect(
            configuration.diagnostics.map(\.message) == [
                "this directory is not read: drop-ins of freshet.yaml belong in freshet.d",
                "the file is not read because its name ends in .yml",
                "this directory has drop-ins for pipeline 'b', which does not exist",
            ])
        #expect(configuration.isValid)
    }

    @Test("the difference of two configurations compares definitions, not files")
    func difference() {
        func pipeline(_ name: String, _ path: String) -> PipelineDefinition {
            PipelineDefinition(name: name, source: .file(path), cache: CacheRules(file: name))
        }
        let old = Configuration(pipelines: [pipeline("a", "/a"), pipeline("b", "/b"), pipeline("c", "/c")])
        let new = Configuration(
            daemon: DaemonDefinition(concurrency: 3),
            pipelines: [pipeline("b", "/b"), pipeline("c", "/other"), pipeline("d", "/d")])
        let difference = new.difference(from: old)
        #expect(difference.added.map(\.name) == ["d"])
        #expect(difference.removed == ["a"])
        #expect(difference.changed == [pipeline("c", "/other")])
        #expect(difference.unchanged == ["b"])
        #expect(difference.isDaemonChanged)
        #expect(!difference.isEmpty)
        #expect(old.difference(from: old).isEmpty)
    }

    @Test("the files of pipelines can be read in parts, by several threads, with the same result", arguments: 0...5)
    func parts(middle: Int) {
        let texts = [
            "pipelines/a.yaml": pipeline(), "pipelines/b.yaml": "source: {url: 1}\ncache: {file: /}\n",
            "pipelines/c.yaml": "source: {url: https://c.example.com}\ncache: {file: c}\nrefresh: {after: [b, d]}\n",
            "pipelines/d.yaml": "source: {url: https://d.example.com}\ncache: {file: c}\nrefresh: {after: [c]}\n",
            "pipelines/e.yaml": "[", "freshet.yaml": "concurrency: 0\n",
        ]
        let files = InMemoryFileSystem(
            texts: Dictionary(uniqueKeysWithValues: texts.map { ("/etc/freshet/\($0.key)", $0.value) }))
        let loader = ConfigurationLoader(searchPath: SearchPath(directories: ["/etc/freshet"]), fileSystem: files)
        let load = ConfigurationLoad(with: loader)
        #expect(load.count == 5)
        let (second, first) = (load.pipelines(in: middle..<5), load.pipelines(in: 0..<middle))
        let configuration = load.configuration(of: first + second)
        let whole = loader.load()
        #expect(configuration.pipelines == whole.pipelines)
        #expect(configuration.diagnostics == whole.diagnostics)
        #expect(configuration.invalid == whole.invalid)
        #expect(configuration.files == whole.files)
        #expect(whole.pipelines.map(\.name) == ["a"])
        #expect(whole.diagnostics.count >= 5)
    }

    @Test("threads that read pipelines in turns get the same configuration, in the same order", arguments: [1, 3])
    func concurrentReading(threads: Int) async {
        let names = (0..<200).map { "p\($0)" }
        var texts = Dictionary(
            uniqueKeysWithValues: names.map { name in
                (
                    "/etc/freshet/pipelines/\(name).yaml",
                    "source: {url: https://\(name).example.com}\ncache: {file: \(name)}\n"
                )
            })
        texts["/etc/freshet/pipelines/p100.yaml"] = "source: {url: 1}\n"
        let loader = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/etc/freshet"]), fileSystem: InMemoryFileSystem(texts: texts))
        let reading = ConcurrentReading(ConfigurationLoad(with: loader))
        let isLast = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<threads { group.addTask { reading.read() } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        // One thread makes the configuration.
        #expect(isLast.count == threads && isLast.count { $0 } == 1)
        #expect(reading.isClaimed)
        let (configuration, whole) = (reading.configuration(), loader.load())
        #expect(configuration.pipelines == whole.pipelines)
        #expect(configuration.invalid == whole.invalid)
        #expect(configuration.pipelines.count == 199)
    }
}
