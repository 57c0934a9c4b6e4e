import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

/// A letter with an accent, and the same as a letter and a combining accent: equal for Swift.
private let (one, other) = ("\u{E9}", "e\u{301}")

@Suite("Texts that differ only in their normalization")
struct ExactTextTests {
    private func definition(_ text: String) throws -> PipelineDefinition {
        try #require(load(["pipelines/a.yaml": text]).pipelines.first)
    }

    @Test(
        "are another definition, whose run has another result",
        arguments: [
            "source: {exec: [/bin/echo, '#']}", "source: {file: /srv/#}", "source: {file: /x}\ntransform: '\"#\"'",
            "source: {url: 'https://example.com/', method: POST, body: '[\"#\"]'}",
            "source: {file: /x}\ncheck: {jq: '. != \"#\"'}",
        ])
    func product(text: String) throws {
        func filled(_ accent: String) -> String { text.replacing("#", with: accent) + "\ncache: {file: a}\n" }
        let (first, second) = (try definition(filled(one)), try definition(filled(other)))
        #expect(first != second && !first.makesTheSame(as: second))
        #expect(try first == definition(filled(one)))
        let (before, now) = (load(["pipelines/a.yaml": filled(one)]), load(["pipelines/a.yaml": filled(other)]))
        #expect(now.difference(from: before).changed.map(\.name) == ["a"])
        #expect(before.difference(from: before).unchanged == ["a"])
    }

    @Test("are another definition, whose run has the same result, in a description and a hook")
    func others() throws {
        for text in ["description: #", "on-change: [{exec: [/bin/true, '#']}]"] {
            func filled(_ accent: String) -> String {
                text.replacing("#", with: accent) + "\nsource: {file: /x}\ncache: {file: a}\n"
            }
            let (first, second) = (try definition(filled(one)), try definition(filled(other)))
            #expect(first != second && first.makesTheSame(as: second), "\(text)")
        }
    }

    @Test("do not make two pipelines share a check")
    func sharing() throws {
        func check(_ text: String, _ file: String) -> String {
            "source: {file: /x}\ncheck: {jq: '. != \"\(text)\"'}\ncache: {file: \(file)}\n"
        }
        let pipelines = load(["pipelines/a.yaml": check(one, "a"), "pipelines/b.yaml": check(other, "b")]).pipelines
        let programs = pipelines.map { Array(($0.check.jq ?? "").utf8) }
        #expect(programs == [Array(". != \"\(one)\"".utf8), Array(". != \"\(other)\"".utf8)])
    }

    @Test("are another hook of several pipelines; the order of keys has no meaning")
    func hooks() throws {
        func hook(_ text: String) -> Configuration {
            load(["hooks/all.yaml": text, "pipelines/a.yaml": "source: {file: /x}\ncache: {file: a}\n"])
        }
        let before = hook("on-change-of: a\nexec: [/x, '\(one)']\ndescription: \(one)\n")
        #expect(
            before.changedHooks(from: hook("on-change-of: a\nexec: [/x, '\(other)']\ndescription: \(one)\n")) == ["all"]
        )
        #expect(before.changedHooks(from: hook("description: \(one)\non-change-of: a\nexec: [/x, '\(one)']\n")) == nil)
    }

    @Test("are another definition of the daemon and of the fleet, and another probe of the pipelines")
    func daemon() {
        func file(_ text: String) -> Configuration {
            load(["freshet.yaml": text, "pipelines/a.yaml": "source: {url: 'https://a.example/'}\ncache: {file: a}\n"])
        }
        let key = "UDLVVGABQKYQVN6VJP7NHSLEA45A5YLS6PNKMIZFV4BBU2HXA5IRUVAL"
        for text in [
            "fleet: {name: f, servers: ['https://n.example:4222'], publishers: [\(key)], certificate-authority: '/etc/#'}",
            "network-probe: {url: 'https://a.example/#'}",
        ] {
            let (before, now) = (
                file(text.replacing("#", with: one) + "\n"), file(text.replacing("#", with: other) + "\n")
            )
            #expect(now.difference(from: before).isDaemonChanged, "\(text)")
            #expect(!now.difference(from: now).isDaemonChanged)
            #expect(now.daemon.fleet == nil || now.daemon.fleet != before.daemon.fleet)
            #expect(now.daemon.networkProbe == nil || now.difference(from: before).changed.map(\.name) == ["a"])
        }
    }

    @Test("are another hook of a pipeline")
    func ownHook() {
        let (first, second) = (HookDefinition(["/bin/true", one]), HookDefinition(["/bin/true", other]))
        #expect(first.identity == #"/bin/true \xc3\xa9"# && second.identity == #"/bin/true e\xcc\x81"#)
        #expect(HookDefinition(["/bin/true", #"\xc3\xa9"#]).identity != first.identity)
        #expect(HookDefinition(["/bin/true", "a b", #"\"#]).identity == #"/bin/true a\ b \\"#)
        // A space and a combining mark after it are one character.
        let joined = HookDefinition(["/bin/true", "a \u{301}b"])
        #expect(joined.identity == #"/bin/true a\ \xcc\x81b"#)
        #expect(joined.identity != HookDefinition(["/bin/true", "a", "\u{301}b"]).identity)
    }

    @Test("are another value of a parameter, and only the configured one is a choice")
    func parameters() throws {
        let definition = try definition(
            "source: {exec: [/bin/echo, '{name}']}\nparameters: {name: {default: \(one)}}\ncache: {file: a}\n")
        var settings = ParameterSettings(for: definition)
        let before = settings.values(for: definition)
        try settings.apply([ParameterChange("name", to: other)], for: definition)
        #expect(settings.values(for: definition) != before)
        #expect(settings.values(for: definition).names(unlike: before) == ["name"])
        let choice = ParameterDefinition("name", default: one, rule: .choices([one]))
        #expect(choice.error(of: one) == nil && choice.error(of: other) != nil)
    }
}
