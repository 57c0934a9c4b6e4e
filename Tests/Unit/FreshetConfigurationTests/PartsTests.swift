import ConfigurationTestSupport
import Testing

@testable import FreshetConfiguration

/// The files that `freshetctl cat` prints and `freshetctl edit` checks.
@Suite struct PartsTests {
    private static let path = SearchPath(directories: ["/etc/freshet", "/usr/lib/freshet"])

    private func parts(_ entries: [String: InMemoryFileSystem.Entry], of wanted: String? = "a") -> [String] {
        let loader = ConfigurationLoader(searchPath: Self.path, fileSystem: InMemoryFileSystem(entries))
        return loader.parts { $0 == wanted }.parts.map { part in
            let content =
                switch part.content {
                case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
                case .masked: "masked"
                case .unreadable(let error): "! \(error.message)"
                }
            return "\(part.file): \(content)"
        }
    }

    @Test("a file hides files of its name in later directories; the drop-ins of all directories follow, sorted by name")
    func order() {
        let top = "/etc/freshet/pipelines", below = "/usr/lib/freshet/pipelines"
        #expect(
            parts([
                "\(top)/a.yaml": .bytes(Array("1".utf8)), "\(below)/a.yaml": .bytes(Array("2".utf8)),
                "\(below)/a.yaml.d/10-x.yaml": .bytes(Array("3".utf8)),
                "\(top)/a.yaml.d/20-y.yaml": .bytes(Array("4".utf8)),
                "\(below)/a.yaml.d/20-y.yaml": .bytes(Array("5".utf8)), "\(top)/b.yaml": .bytes(Array("6".utf8)),
            ]) == ["\(top)/a.yaml: 1", "\(below)/a.yaml.d/10-x.yaml: 3", "\(top)/a.yaml.d/20-y.yaml: 4"])
    }

    @Test("the files of hooks of several pipelines follow the others")
    func hooks() {
        let files = InMemoryFileSystem(texts: [
            "/etc/freshet/hooks/all.yaml": "1", "/etc/freshet/hooks/all.yaml.d/x.yaml": "2",
            "/etc/freshet/pipelines/a.yaml": "3",
        ])
        let parts = ConfigurationLoader(searchPath: Self.path, fileSystem: files).parts { _ in true }.parts
        #expect(parts.map(\.pipeline) == ["a", nil, nil] && parts.map(\.hook) == [nil, "all", "all"])
    }

    @Test("a mask is shown without its drop-ins, and an unreadable file is shown with its error")
    func masks() {
        let top = "/etc/freshet/pipelines"
        #expect(
            parts(["\(top)/a.yaml": .mask, "\(top)/a.yaml.d/x.yaml": .bytes([])]) == ["\(top)/a.yaml: masked"])
        let error = FileError(message: "no right")
        #expect(
            parts(["\(top)/a.yaml": .bytes([]), "\(top)/a.yaml.d/x.yaml": .error(error)])
                == ["\(top)/a.yaml: ", "\(top)/a.yaml.d/x.yaml: ! no right"])
    }

    @Test("the file of a pipeline is the first of its name, unless it is masked")
    func fileOfPipeline() {
        let top = "/etc/freshet/pipelines", below = "/usr/lib/freshet/pipelines"
        let entries: [String: InMemoryFileSystem.Entry] = [
            "\(top)/a.yaml": .bytes([]), "\(below)/a.yaml": .bytes([]), "\(below)/b.yaml": .bytes([]),
            "\(top)/c.yaml": .mask, "\(below)/c.yaml": .bytes([]), "\(top)/d.yaml.d/x.yaml": .bytes([]),
            "\(top)/e.yaml": .error(FileError(message: "no right")),
        ]
        let loader = ConfigurationLoader(searchPath: Self.path, fileSystem: InMemoryFileSystem(entries))
        func file(_ name: String) -> String? { loader.file(ofPipeline: name) }
        #expect(file("a") == "\(top)/a.yaml" && file("b") == "\(below)/b.yaml" && file("e") == "\(top)/e.yaml")
        for name in ["c", "d", "f", "", "../pipelines/a"] { #expect(file(name) == nil, "\(name)") }
    }

    @Test("the daemon's files are parts too")
    func daemon() {
        #expect(
            parts(
                [
                    "/usr/lib/freshet/freshet.yaml": .bytes(Array("1".utf8)),
                    "/etc/freshet/freshet.d/x.yaml": .bytes(Array("2".utf8)),
                ], of: nil) == ["/usr/lib/freshet/freshet.yaml: 1", "/etc/freshet/freshet.d/x.yaml: 2"])
    }

    // MARK: Copies

    private func errors(_ texts: [String: String], copies: [String: String]) -> [String] {
        let machine = InMemoryFileSystem(texts: texts)
        let contents = copies.mapValues { copy in
            Result { () throws(FileError) in try machine.content(ofFile: copy, limit: 1 << 20) }
        }
        let files = SubstitutingFileSystem(machine, copies: contents)
        let loader = ConfigurationLoader(searchPath: Self.path, fileSystem: files)
        return loader.load().diagnostics.map { "\($0.file): \($0.message)" }
    }

    private static let valid = "source: {file: /a}\ncache: {file: a}\n"

    @Test("a file is read from its copy, and errors name the file")
    func replaced() {
        let file = "/etc/freshet/pipelines/a.yaml"
        #expect(errors([file: Self.valid, "/tmp/a": "cache: {fiel: a}\n"], copies: [:]).isEmpty)
        let found = errors([file: Self.valid, "/tmp/a": Self.valid + "evry: 1\n"], copies: [file: "/tmp/a"])
        #expect(found.count == 1 && found[0].hasPrefix("\(file): unknown key 'evry'"))
    }

    @Test("a copy may be of a file and a directory that do not exist yet")
    func added() {
        let file = "/etc/freshet/pipelines/b.yaml"
        // It has the same cache file as another pipeline.
        let found = errors(
            ["/usr/lib/freshet/pipelines/a.yaml": Self.valid, "/tmp/b": Self.valid], copies: [file: "/tmp/b"])
        #expect(found.contains { $0.hasPrefix(file) && $0.contains("is also the cache file of pipeline 'a'") })
        let dropIn = "/etc/freshet/pipelines/a.yaml.d/override.yaml"
        #expect(
            errors(
                ["/usr/lib/freshet/pipelines/a.yaml": Self.valid, "/tmp/c": "cache: {file: 3/4}\n"],
                copies: [dropIn: "/tmp/c"]
            ).contains { $0.hasPrefix(dropIn) })
    }
}
