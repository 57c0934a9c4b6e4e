import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The key unpack")
struct UnpackTests {
    private func rule(_ text: String) -> UnpackRule? {
        load(pipeline: pipeline(source: "{url: https://a.example/, unpack: \(text)}")).pipelines.first?.stage.unpack
    }

    private func message(_ text: String) -> String? {
        let found = load(pipeline: pipeline(source: "{url: https://a.example/, unpack: \(text)}")).diagnostics.first
        return found.map { "\($0.message); \($0.remedy ?? "")" }
    }

    @Test("a format, and a format with the path of a file")
    func formats() {
        for compression in UnpackRule.Compression.allCases {
            #expect(rule(compression.rawValue) == .compressed(compression))
        }
        #expect(rule("tar:a/b.csv") == .member(of: .tar, path: "a/b.csv"))
        #expect(rule("zip:./Ä b:c_*/d.csv") == .member(of: .zip, path: "./Ä b:c_*/d.csv"))
        #expect(UnpackRule.member(of: .zip, path: "a:b").description == "zip:a:b")
        #expect(load(pipeline: pipeline()).pipelines.first?.stage.unpack == nil)
    }

    @Test("each source has its own")
    func sources() throws {
        let configuration = load(
            pipeline: """
                sources:
                  a: {url: https://a.example/list.gz, unpack: gzip}
                  b: {file: /b, unpack: xz, each: {as: x, exec: [/d], unpack: 'zip:e'}}
                  c: {file: /c}
                combine: .a
                cache: {file: list}
                """)
        #expect(configuration.diagnostics == [])
        let stages = try #require(configuration.pipelines.first).stage.all
        #expect(stages.map { $0.unpack.map(\.description) ?? "" } == ["", "gzip", "xz", "zip:e", ""])
    }

    @Test(
        "an error names what is possible, and the remedy",
        arguments: [
            ("rar", "'unpack' has to be gzip, zstd, xz, bzip2, tar:PATH or zip:PATH, not 'rar'; "),
            ("gz", "'unpack' has to be gzip, zstd, xz, bzip2, tar:PATH or zip:PATH, not 'gz'; write gzip"),
            (
                "tgz",
                "'unpack' has to be gzip, zstd, xz, bzip2, tar:PATH or zip:PATH, not 'tgz'; write tar:PATH, which also "
                    + "unpacks a compressed archive"
            ),
            (
                "tar",
                "'unpack' needs the path of a file in the archive; write tar:PATH; tar --list or unzip -l shows the "
                    + "paths"
            ),
            (
                "'zip:'",
                "'unpack' needs the path of a file in the archive; write zip:PATH; tar --list or unzip -l shows the "
                    + "paths"
            ),
            ("tar:a/", "'unpack' is a directory; write the path of a file"),
            ("\"tar:a\\tb\"", "'unpack' has to be a path without control characters; "),
        ])
    func errors(_ text: String, _ expected: String) { #expect(message(text) == expected) }

    @Test("a path has at most 1024 bytes")
    func length() {
        #expect(rule("tar:" + String(repeating: "a", count: 1_024)) != nil)
        #expect(message("tar:" + String(repeating: "a", count: 1_025))?.contains("more than 1024 bytes") == true)
    }

    @Test("unpack and pages exclude each other")
    func pages() {
        let found = load(pipeline: pipeline(source: "{url: https://a.example/, unpack: gzip, pages: {next: link}}"))
        #expect(found.diagnostics.map(\.message) == ["'unpack' and 'pages' exclude each other"])
    }

    @Test("a changed unpack changes the binding, so the next request is not conditional")
    func binding() throws {
        let bindings = try ["", ", unpack: gzip", ", unpack: 'tar:a'", ", unpack: 'tar:b'"].map { rest in
            try #require(load(pipeline: pipeline(source: "{url: https://a.example/\(rest)}")).pipelines.first)
                .validatorBinding()
        }
        #expect(Set(bindings).count == 4)
    }
}
