import Testing

@testable import FreshetConfiguration

/// What `freshetctl cat` prints, and what `freshetctl edit` has checked.
@Suite struct PartsTests {
    private static let path = SearchPath(directories: ["/etc/freshet", "/usr/lib/freshet"])

    private func parts(_ entries: [String: InMemoryFileSystem.Entry], of wanted: String? = "a") -> [String] {
        let loader = ConfigurationLoader(searchPath: Self.path, fileSystem: InMemoryFileSystem(entries))
        return loader.parts { $0 == wanted }.parts.map { part in
            let content =
                switch part.content {
                case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
                case .masked: "masked"
                case .unreadable(let fault): "! \(fault.message)"
                }
            return "\(part.file): \(content)"
        }
    }

    @Test("a file above hides that below; drop-ins of both follow, by name, the higher of each name")
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

    @Test("a mask is shown, and what would be laid over it is not; what cannot be read is named")
    func masks() {
        let top = "/etc/freshet/pipelines"
        #expect(
            parts(["\(top)/a.yaml": .mask, "\(top)/a.yaml.d/x.yaml": .bytes([])]) == ["\(top)/a.yaml: masked"])
        let fault = FileError(message: "no right")
        #expect(
            parts(["\(top)/a.yaml": .bytes([]), "\(top)/a.yaml.d/x.yaml": .fault(fault)])
                == ["\(top)/a.yaml: ", "\(top)/a.yaml.d/x.yaml: ! no right"])
    }

    @Test("a pipeline has a file if one is there that is not masked, the highest of its name")
    func fileOfPipeline() {
        let top = "/etc/freshet/pipelines", below = "/usr/lib/freshet/pipelines"
        let entries: [String: InMemoryFileSystem.Entry] = [
            "\(top)/a.yaml": .bytes([]), "\(below)/a.yaml": .bytes([]), "\(below)/b.yaml": .bytes([]),
            "\(top)/c.yaml": .mask, "\(below)/c.yaml": .bytes([]), "\(top)/d.yaml.d/x.yaml": .bytes([]),
            "\(top)/e.yaml": .fault(FileError(message: "no right")),
        ]
        let loader = ConfigurationLoader(searchPath: Self.path, fileSystem: InMemoryFileSystem(entries))
        func file(_ name: String) -> String? { loader.file(ofPipeline: name) }
        #expect(file("a") == "\(top)/a.yaml" && file("b") == "\(below)/b.yaml" && file("e") == "\(top)/e.yaml")
        for name in ["c", "d", "f", "", "../pipelines/a"] { #expect(file(name) == nil, "\(name)") }
    }

    @Test("the daemon's own files are a part as well")
    func daemon() {
        #expect(
            parts(
                [
                    "/usr/lib/freshet/freshet.yaml": .bytes(Array("1".utf8)),
                    "/etc/freshet/freshet.d/x.yaml": .bytes(Array("2".utf8)),
                ], of: nil) == ["/usr/lib/freshet/freshet.yaml: 1", "/etc/freshet/freshet.d/x.yaml: 2"])
    }

    // MARK: Copies

    private func faults(_ texts: [String: String], copies: [String: String]) -> [String] {
        let machine = InMemoryFileSystem(texts: texts)
        let contents = copies.mapValues { copy in
            Result { () throws(FileError) in try machine.content(ofFile: copy, limit: 1 << 20) }
        }
        let files = SubstitutingFileSystem(machine, copies: contents)
        let loader = ConfigurationLoader(searchPath: Self.path, fileSystem: files)
        return loader.load().diagnostics.map { "\($0.file): \($0.message)" }
    }

    private static let sound = "source: {file: /a}\ncache: {file: a}\n"

    @Test("a file is read from its copy, and faults name the file")
    func replaced() {
        let file = "/etc/freshet/pipelines/a.yaml"
        #expect(faults([file: Self.sound, "/tmp/a": "cache: {fiel: a}\n"], copies: [:]).isEmpty)
        let found = faults([file: Self.sound, "/tmp/a": Self.sound + "evry: 1\n"], copies: [file: "/tmp/a"])
        #expect(found.count == 1 && found[0].hasPrefix("\(file): unknown key 'evry'"))
    }

    @Test("a file that is not there yet counts, in a directory that is not there yet")
    func added() {
        let file = "/etc/freshet/pipelines/b.yaml"
        // It wants the name of another's file.
        let found = faults(
            ["/usr/lib/freshet/pipelines/a.yaml": Self.sound, "/tmp/b": Self.sound], copies: [file: "/tmp/b"])
        #expect(found.contains { $0.hasPrefix(file) && $0.contains("is the cache file of pipeline 'a' too") })
        let dropIn = "/etc/freshet/pipelines/a.yaml.d/override.yaml"
        #expect(
            faults(
                ["/usr/lib/freshet/pipelines/a.yaml": Self.sound, "/tmp/c": "cache: {file: 3/4}\n"],
                copies: [dropIn: "/tmp/c"]
            ).contains { $0.hasPrefix(dropIn) })
    }
}
