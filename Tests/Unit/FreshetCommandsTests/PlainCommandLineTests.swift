import ArgumentParser
import Testing

@testable import FreshetCommands

@Suite("Command lines that are parsed without ArgumentParser") struct PlainCommandLineTests {
    @Test(
        "plain command lines have the same result as with ArgumentParser",
        arguments: [
            ["status"], ["status", "jwks"], ["status", "--json", "a", "b*"], ["list"],
            ["list", "--no-legend", "--no-pager"], ["is-fresh", "jwks"], ["is-fresh", "-q", "a", "--quiet", "b"],
            ["status", ""], [], ["status", "--socket", "/x", "a"],
            ["status", "--user"], ["list", "a", "--user", "--json"], ["--socket", "/x", "status"],
            ["--socket", "/x", "is-fresh", "--quiet", "a"], ["--json", "list", "--user", "a", "b"],
            ["--socket", "status", "list", "status"],
        ])
    func same(arguments: [String]) throws {
        let plain = try #require(PlainCommandLine(arguments))
        switch try FreshetctlCommand.parseAsRoot(Freshetctl.verbFirst(arguments)) {
        case let parsed as List:
            #expect(plain.verb == .list && plain.names == parsed.names && plain.options == parsed.options.values)
            #expect(parsed.state == nil && parsed.limit == nil)
        case let parsed as Status:
            #expect(plain.verb == .status && plain.names == parsed.names && plain.options == parsed.options.values)
            #expect(parsed.journalLines == nil)
        case let parsed as IsFresh:
            #expect(plain.verb == .isFresh && plain.names == parsed.names && plain.options == parsed.options.values)
        case let parsed: Issue.record("the parser takes it for \(type(of: parsed))")
        }
    }

    @Test(
        "other command lines are left to ArgumentParser: other verbs, options with a value, abbreviations, errors",
        arguments: [
            ["show"], ["--json"], ["--socket", "/x"], ["--socket", "/x", "show", "a"], ["a", "status"],
            ["--socket", "/x", "status", "--socket", "/y"], ["--version", "status"], ["status", "-n", "3"],
            ["status", "--socket"], ["status", "--socket=/x"],
            ["status", "--socket", "--json"], ["status", "--socket", "/x", "--socket", "/y"],
            ["status", "--socket", ""], ["status", "--user", "--socket", "/x"], ["status", "--lines=3"],
            ["status", "--"], ["status", "-"], ["status", "--help"], ["status", "-h"],
            ["status", "--version"], ["list", "--limit=2"], ["list", "--state", "failed"], ["list", "--jso"],
            ["is-fresh"], ["is-fresh", "--quiet"], ["statsu"], [""], ["help", "status"],
        ])
    func others(arguments: [String]) {
        #expect(PlainCommandLine(arguments) == nil)
    }
}
