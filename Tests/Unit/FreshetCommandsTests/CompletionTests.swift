import FreshetControl
import Testing

@testable import FreshetCommands

/// The completions of command lines, as a table.
@Suite struct CompletionTests {
    private static var source: Completion.Source {
        let pipelines = ["feed-a", "feed-b", "homepage", "jwks"].map { name in
            var pipeline = PipelineStatus(name: name, source: "https://example.com/\(name)", state: .loaded)
            if name == "homepage" {
                pipeline.parameters = [
                    ParameterStatus(name: "language", value: "de", default: "en", isSet: true, choices: ["en", "de"]),
                    ParameterStatus(name: "query", value: "", default: "", isSet: false),
                ]
                pipeline.more = MorePages(
                    total: 3,
                    places: [
                        .init(path: ["comedy"], pages: 1), .init(path: ["news", "local"], pages: 1),
                        .init(path: ["news", "world"], pages: 2),
                    ])
            }
            return pipeline
        }
        return Completion.Source(
            pipelines: { prefix in pipelines.filter { $0.name.hasPrefix(prefix) } },
            pipeline: { name in pipelines.first { $0.name == name } },
            generations: { _ in
                [(7, true), (6, true), (5, false)].map { number, kept in
                    PastGeneration(
                        number: number, committedAt: 1, size: 1, digest: "ab", kept: kept, current: number == 7)
                }
            },
            signals: {
                ["network", "network to 192.0.2.1", "file /etc/a", "resume", "operator", "timer"].map {
                    SignalStatus(name: $0, fact: "f")
                }
            },
            examples: { [.init(text: $0 == .hook ? "site" : "kiosk", description: "For a kiosk.")] },
            hooks: { ["shop"] })
    }

    /// The candidates that begin like the last word.
    private func next(_ line: String) throws -> [String] {
        let tree = try #require(CommandTree.ofFreshetctl())
        var words = Completion.split(line)
        let current = words.removeLast()
        switch Completion.answer(Array(words.dropFirst()), current, tree, Self.source) {
        case .files: return [":files"]
        case .directories: return [":directories"]
        case .candidates(let candidates): return candidates.map(\.text).filter { $0.hasPrefix(current) }
        }
    }

    @Test(
        "each position of a command line has its kind of value",
        arguments: [
            ("freshetctl relo", "reload"), ("freshetctl un", "unset unpin"), ("freshetctl --js", "--json"),
            ("freshetctl status fe", "feed-a feed-b"), ("freshetctl status feed-a fe", "feed-b"),
            ("freshetctl --json status jw", "jwks"), ("freshetctl --socket /s get h", "homepage"),
            ("freshetctl get jwks ", ""), ("freshetctl get jwks --gen", "--generation"),
            ("freshetctl get jwks --generation ", "7 6"),
            ("freshetctl get jwks --generation=", "--generation=7 --generation=6"),
            ("freshetctl rollback jwks ", "7 6"), ("freshetctl rollback jwks 6 ", ""),
            ("freshetctl diff jwks 6 ", "7 6"),
            ("freshetctl set homepage l", "language="),
            ("freshetctl set homepage language=", "language=en language=de"),
            ("freshetctl set homepage language=d", "language=de"), ("freshetctl unset homepage ", "language query"),
            ("freshetctl unset homepage query ", "language"), ("freshetctl load-more homepage ", "comedy news"),
            ("freshetctl load-more homepage news ", "local world"), ("freshetctl signals ", "list fire"),
            ("freshetctl signals fire ", "network file resume"), ("freshetctl signals fire network ", "to"),
            ("freshetctl signals fire file ", "/etc/a"), ("freshetctl signals --follow re", "resume"),
            ("freshetctl log-level de", "debug"), ("freshetctl log-level debug ", ""), ("freshetctl help st", "status"),
            ("freshetctl completions ", "bash zsh fish"), ("freshetctl list --state f", "failed"),
            ("freshetctl list --state failed,wai", "failed,waiting"), ("freshetctl show jwks -p na", "name"),
            ("freshetctl check --config-dir ", ":directories"), ("freshetctl run jwks --dry-run --output ", ":files"),
            ("freshetctl run homepage --set l", "language="), ("freshetctl edit --from ", "kiosk"),
            ("freshetctl edit --hook --from ", "site"), ("freshetctl edit --hook ", "shop"),
            ("freshetctl edit --hook shop ", ""), ("freshetctl edit je", ""), ("freshetctl edit jw", "jwks"),
            ("freshetctl refresh --wait --w", ""), ("freshetctl status -- fe", "feed-a feed-b"),
            ("freshetctl refresh jwks --f", "--force"), ("freshetctl teleport ", ""),
        ])
    func places(line: String, expected: String) throws {
        #expect(try next(line).joined(separator: " ") == expected)
    }

    @Test("each verb and each option is suggested")
    func whole() throws {
        let tree = try #require(CommandTree.ofFreshetctl())
        #expect(Set(try next("freshetctl ")) == Set(Freshetctl.verbs))
        for verb in tree.subcommands ?? [] where verb.commandName != "help" && verb.subcommands?.isEmpty != false {
            let offered = Set(try next("freshetctl \(verb.commandName) -"))
            #expect(offered.isSuperset(of: ["--help", "--socket", "--quiet", "-q"]), "\(verb.commandName)")
        }
    }

    @Test("a line is split as by a shell")
    func lines() {
        #expect(Completion.split("a  b 'c d' \"e'f\" g\\ h") == ["a", "b", "c d", "e'f", "g h"])
        #expect(Completion.split("a ") == ["a", ""])
        #expect(Completion.split("") == [""])
        // A combining mark after a space or a quotation mark.
        #expect(Completion.split("a \u{301}b '\u{301}c d'") == ["a", "\u{301}b", "\u{301}c d"])
    }

    @Test("bash gets the part of a word after its last word break")
    func bash() {
        func answer(_ line: String, _ piece: String) -> String {
            let transcript = Transcript()
            #expect(
                Completion.answer(["bash", line, piece], transcript.context(environment: ["FRESHET_SOCKET": "/x"]))
                    == .success)
            #expect(transcript.printError.isEmpty)
            return transcript.output
        }
        #expect(answer("freshetctl log-level deb", "deb") == "debug\n")
        // Without a daemon there are no names and no error messages.
        #expect(answer("freshetctl status ", "") == "")
        #expect(answer("freshetctl list --state=fai", "fai") == "failed\n")
        #expect(answer("freshetctl list --state=failed,wai", "failed,wai") == "failed,waiting\n")
        #expect(answer("freshetctl list --state=", "=") == "idle\nwaiting\nloading\nloaded\nfailed\nheld\n")
    }

    @Test("bash gets quoted words")
    func escaping() {
        #expect(Completion.escaped("x y") == "x\\ y")
        #expect(Completion.escaped("it's $5; ok?") == "it\\'s\\ \\$5\\;\\ ok\\?")
        #expect(Completion.escaped("--state=failed,waiting") == "--state=failed,waiting")
        #expect(Completion.escaped("größe_1.json") == "größe_1.json")
        #expect(Completion.escaped("it's $d", in: "'") == #"it'\''s $d"#)
        #expect(Completion.escaped(#"a"b $d `c` \"#, in: "\"") == #"a\"b \$d \`c\` \\"#)
        for word in ["x y", "a'b\"c", "\\", "~/$HOME"] {
            #expect(Completion.split("a " + Completion.escaped(word)) == ["a", word])
        }
    }

    @Test("other shells get descriptions")
    func notes() {
        let transcript = Transcript()
        #expect(Completion.answer(["fish", "--", "refresh", "--wa"], transcript.context()) == .success)
        #expect(transcript.output == "--wait\tWait until the runs have ended.\n")
    }

    @Test("completions prints the script for a shell", arguments: ["bash", "zsh", "fish"])
    func scripts(shell: String) {
        let transcript = Transcript()
        #expect(freshetctl("completions \(shell)", transcript) == .success)
        #expect(transcript.output.contains("__complete \(shell)") && transcript.output.hasSuffix("\n"))
        #expect(freshetctl("completions tcsh", Transcript()) == .usage)
    }
}
