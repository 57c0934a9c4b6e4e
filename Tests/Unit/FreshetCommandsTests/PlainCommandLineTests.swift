import ArgumentParser
import Testing

@testable import FreshetCommands

@Suite("Command lines that are read without the parser") struct PlainCommandLineTests {
    /// All that is in a verb.
    private func text(_ verb: Any) -> String {
        var text = ""
        dump(verb, to: &text)
        return text
    }

    @Test(
        "they mean what the parser makes of them",
        arguments: [
            ["status"], ["status", "jwks"], ["status", "--json", "a", "b*"], ["list"],
            ["list", "--no-legend", "--no-pager"],
            ["is-fresh", "jwks"], ["is-fresh", "-q", "a", "--quiet", "b"], ["status", ""],
        ])
    func same(arguments: [String]) throws {
        let plain = try #require(PlainCommandLine.verb(arguments))
        let parsed = try #require(Freshetctl.parsedVerb(arguments))
        #expect(type(of: plain) == type(of: parsed))
        #expect(text(plain) == text(parsed))
    }

    @Test("no verb is the list")
    func none() throws {
        let plain = try #require(PlainCommandLine.verb([]))
        #expect(text(plain) == text(try FreshetctlCommand.parseAsRoot([])))
    }

    @Test(
        "all else is left to the parser: other verbs, options with a value, abbreviations, and what is wrong",
        arguments: [
            ["show"], ["--json"], ["status", "-n", "3"], ["status", "--socket", "/x"], ["status", "--socket=/x"],
            ["status", "--lines=3"], ["status", "--"], ["status", "-"], ["status", "--help"], ["status", "-h"],
            ["status", "--version"], ["list", "--limit=2"], ["list", "--state", "failed"], ["list", "--jso"],
            ["is-fresh"], ["is-fresh", "--quiet"], ["statsu"], [""], ["help", "status"],
        ])
    func others(arguments: [String]) {
        #expect(PlainCommandLine.verb(arguments) == nil)
    }
}
