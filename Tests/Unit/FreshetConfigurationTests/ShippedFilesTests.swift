import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("The shipped files")
struct ShippedFilesTests {
    /// The project's directory: four above this file.
    private static let project = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(4)
        .joined(separator: "/")

    private func load(_ directory: String) -> Configuration {
        ConfigurationLoader(searchPath: SearchPath(directories: ["\(Self.project)/\(directory)"], mustExist: true))
            .load()
    }

    private func text(_ path: String) throws -> String {
        let content = try HostFileSystem().content(ofFile: "\(Self.project)/\(path)", limit: SourceText.maximumSize)
        guard case .bytes(let bytes) = content else {
            Issue.record("\(path) is not there")
            return ""
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("the examples are valid, and are the five pipelines and the hook that the documentation names")
    func examples() {
        let configuration = load("etc/examples")
        #expect(configuration.diagnostics.map { $0.text() } == [])
        #expect(configuration.pipelines.map(\.name) == ["blocklist", "flags", "hosts", "jwks", "kernel"])
        #expect(configuration.hooks.map(\.name) == ["site"])
        #expect(configuration.hooks.allSatisfy { $0.description != nil })
        for pipeline in configuration.pipelines {
            if case .http(let source) = pipeline.source { #expect(source.url.hasPrefix("http://127.0.0.1:8480/")) }
        }
    }

    @Test("the eleven uses are valid, and each has a description and a page")
    func uses() throws {
        let names = [
            "access-lists", "blocklists", "calendar", "crl", "feature-flags", "geoip", "jwks-discovery", "kiosk",
            "registry-tags",
            "threat-feed", "trust-bundle",
        ]
        var texts = ["pipelines/blocklist.yaml": try text("etc/examples/pipelines/blocklist.yaml")]
        for name in names { texts["pipelines/\(name).yaml"] = try text("etc/examples/uses/\(name).yaml") }
        let configuration = FreshetConfigurationTests.load(texts)
        #expect(configuration.diagnostics.map { $0.text() } == [])
        #expect(configuration.pipelines.count == 12)
        #expect(configuration.pipelines.allSatisfy { $0.description != nil })
        for name in names {
            #expect(texts["pipelines/\(name).yaml"]?.contains("What usually goes wrong:") == true)
            #expect(try text("docs/how-to/\(name).md").contains("## What usually goes wrong"))
            #expect(try text("docs/how-to/README.md").contains("](\(name).md)"))
        }
    }

    @Test("the installed default configures nothing")
    func installedDefault() {
        let configuration = load("etc/freshet")
        #expect(configuration.diagnostics.map { $0.text() } == [])
        #expect(configuration.daemon == DaemonDefinition())
        #expect(configuration.daemonFiles.count == 1)
    }

    @Test("the comments of the installed default show all keys with valid values")
    func commentedKeys() throws {
        let lines = try text("etc/freshet/freshet.yaml").split(separator: "\n")
            .filter { $0.hasPrefix("#") && $0.dropFirst().first?.isLetter == true }
            .map { $0.dropFirst() }
        #expect(lines.map { $0.prefix { $0 != ":" } } == KeyCatalogue.Section.daemon.keys.map { $0[...] })
        let configuration = FreshetConfigurationTests.load(["freshet.yaml": lines.joined(separator: "\n")])
        #expect(configuration.diagnostics.map { $0.text() } == [])
        #expect(configuration.daemon.fleet?.name == "prod")
        var daemon = configuration.daemon
        daemon.fleet = nil
        #expect(
            daemon
                == DaemonDefinition(
                    networkTarget: "192.0.2.1",
                    networkProbe: NetworkProbe(url: "http://probe.example/204", host: "probe.example")))
    }

    @Test("the manual has a heading for each key, and for no other")
    func manual() throws {
        let headings = try text("docs/configuration.md").split(separator: "\n").filter { $0.hasPrefix("### `") }
            .map { String($0.dropFirst(5).dropLast()) }
        let keys = KeyCatalogue.Section.allCases.flatMap { section in
            section.ownKeys.map { section.path.isEmpty ? $0 : "\(section.path).\($0)" }
        }
        #expect(Set(headings) == Set(keys))
        #expect(headings.count == Set(headings).count)
    }
}
