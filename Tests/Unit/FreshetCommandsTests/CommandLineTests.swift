import ArgumentParser
import FreshetControl
import Testing

@testable import FreshetCommands

@Suite struct CommandLineTests {
    @Test("the exit statuses are the documented numbers")
    func exitStatuses() {
        let numbers = Dictionary(uniqueKeysWithValues: CommandStatus.allCases.map { ($0, $0.rawValue) })
        #expect(
            numbers == [
                .success: 0, .failure: 1, .usage: 64, .nothingMore: 66, .notRunning: 69, .tryLater: 75,
                .notPermitted: 77,
                .configuration: 78,
            ])
    }

    @Test(
        "an unknown verb is answered with a similar one",
        arguments: [
            ("statsu", "there is no verb 'statsu'; did you mean 'status'?"),
            ("--json lst", "there is no verb 'lst'; did you mean 'list'?"),
            ("--socket /s refrsh x", "there is no verb 'refrsh'; did you mean 'refresh'?"),
            ("teleportation", "there is no verb 'teleportation'\n"),
            ("help statsu", "there is no verb 'statsu'; did you mean 'status'?"),
            ("help signals teleportation", "there is no verb 'teleportation'\n"),
        ])
    func unknownVerb(line: String, expected: String) {
        let transcript = Transcript()
        #expect(freshetctl(line, transcript, socket: "/nonexistent/s") == .usage)
        #expect(transcript.talk.contains(expected))
        #expect(transcript.output.isEmpty)
    }

    @Test(
        "a wrong command line is status 64, and says why on standard error",
        arguments: [
            "status --no-such-option", "signals fire", "signals fier network", "refresh", "refresh --all jwks", "get",
            "get a b", "signals x",
            "--no-such-option", "log-level loud", "log-level 8", "log-level info debug",
            "get a --file b --json", "list --socket", "list --socket=", "refresh a --user --socket /s", "run jwks",
            "run --dry-run", "run a b --dry-run",
            "is-fresh", "wait", "wait a --fresh --state loaded", "wait a --timeout soon", "wait a --state gone",
            "wait a --generation 0", "logs -n -1", "status -n x", "list --limit 0", "list --state", "edit",
            "edit a --from b", "edit --new --drop-in a", "edit --examples a", "diagnose", "completions",
            "completions csh",
        ])
    func usage(line: String) {
        let transcript = Transcript()
        #expect(freshetctl(line, transcript, socket: "/nonexistent/s") == .usage)
        #expect(!transcript.talk.isEmpty && transcript.output.isEmpty)
    }

    @Test("a misspelt log level is answered with a similar one")
    func misspeltLevel() {
        let transcript = Transcript()
        #expect(freshetctl("log-level debgu", transcript, socket: "/nonexistent/s") == .usage)
        #expect(transcript.talk.contains("'debgu' is no log level; did you mean 'debug'?"))
    }

    @Test("help is data and a success", arguments: ["--help", "help", "status --help", "help refresh"])
    func help(line: String) {
        let transcript = Transcript()
        #expect(freshetctl(line, transcript) == .success)
        #expect(transcript.output.contains("USAGE: freshetctl") && transcript.talk.isEmpty)
    }

    @Test("the list of verbs is what it is, and fits a terminal of 80 columns")
    func helpText() {
        let transcript = Transcript()
        _ = freshetctl("--help", transcript)
        let rows = transcript.output.split(separator: "\n").drop { $0 != "SUBCOMMANDS:" }.dropFirst()
        #expect(
            rows.joined(separator: "\n") == """
                \u{20} status                  Show the daemon and all pipelines, or all of one.
                \u{20} list (default)          List the pipelines, one a line.
                \u{20} show                    Show properties as NAME=VALUE lines, for scripts.
                \u{20} is-fresh                Succeed if copies are fresh, for monitoring.
                \u{20} wait                    Wait until pipelines are fresh, or in a state.
                \u{20} diagnose                Say where a pipeline is stuck, and what to do.
                \u{20} logs                    Show the journal of pipelines, or of the daemon.
                \u{20} cat                     Print the configuration files that count.
                \u{20} edit                    Edit a pipeline's file, check it, install it, reload.
                \u{20} refresh                 Run pipelines now.
                \u{20} load-more               Load a further page.
                \u{20} set                     Set parameters of a pipeline, or show them.
                \u{20} unset                   Set parameters of a pipeline back to their defaults.
                \u{20} get                     Print the content of a copy, or of an older one.
                \u{20} history                 Show the generations that there are, and were.
                \u{20} diff                    Show how two generations of a pipeline differ.
                \u{20} accept                  Make content the copy that a check has refused.
                \u{20} rollback                Make an earlier generation the current copy again.
                \u{20} pin                     Keep a pipeline's current copy from being replaced.
                \u{20} unpin                   Let a pinned copy be replaced again.
                \u{20} hold                    Keep pipelines from running.
                \u{20} release                 Let held pipelines run again.
                \u{20} watch                   Print a copy, and then each change of it.
                \u{20} monitor                 Follow signals, runs and states as they happen.
                \u{20} graph                   Draw how signals lead to pipelines, files and hooks.
                \u{20} timeline                Draw what was heard and what ran, over time.
                \u{20} marbles                 Draw why a pipeline ran: what it heard and gathered.
                \u{20} top                     Watch pipelines live, on a terminal.
                \u{20} metrics                 Print metrics for Prometheus, or write them to a file.
                \u{20} signals                 Show, follow or raise the sources of signals.
                \u{20} reload                  Have the daemon read its configuration again.
                \u{20} log-level               Show how much the daemon logs, or change it.
                \u{20} check                   Check the configuration, without the daemon.
                \u{20} run                     Try a pipeline and keep nothing: run NAME --dry-run.
                \u{20} fsck                    Examine the cache, and repair it.
                \u{20} prune                   Remove what no configured pipeline owns.
                \u{20} completions             Print the completion script of a shell.
                \u{20} See 'freshetctl help <subcommand>' for detailed help.
                """)
        #expect(transcript.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
    }

    @Test("help names all verbs, and each says what it is for")
    func allVerbs() {
        let transcript = Transcript()
        _ = freshetctl("--help", transcript)
        for verb in ["status", "list", "refresh", "get", "monitor", "signals", "reload", "log-level", "check"] {
            #expect(transcript.output.contains("  \(verb) "))
        }
    }

    @Test("each verb names itself: to make a name of a type costs a start of the program a fifth of its time")
    func names() {
        #expect(FreshetctlCommand.configuration.subcommands.allSatisfy { $0.configuration.commandName != nil })
    }

    @Test("help of each verb has examples of it, and fits a terminal of 80 columns but for its usage")
    func examples() {
        for verb in Freshetctl.verbs where verb != "help" {
            let transcript = Transcript()
            #expect(freshetctl("help \(verb)", transcript) == .success)
            let lines = transcript.output.split(separator: "\n")
            #expect(lines.contains { $0.hasPrefix("  freshetctl ") && $0.contains(verb) }, "\(verb) has no example")
            let wide = lines.filter { $0.count > 80 && !$0.hasPrefix("USAGE: ") }
            #expect(wide.isEmpty, "\(wide)")
        }
    }

    @Test(
        "a usage of several forms has all of them, one below the other",
        arguments: [
            ("metrics", "[<names> ...]", "write <path>"), ("signals", "[--follow [<name> ...]]", "fire <name> ..."),
        ])
    func usages(verb: String, first: String, second: String) {
        let transcript = Transcript()
        #expect(freshetctl("\(verb) --help", transcript) == .success)
        #expect(
            transcript.output.contains(
                "USAGE: freshetctl \(verb) \(first)\n       freshetctl \(verb) \(second)\n"), "\(transcript.output)")
    }

    @Test("all verbs that read the configuration take directories of it, and say so with the same words")
    func configurationDirectories() {
        for verb in ["cat", "check", "edit", "run"] {
            let transcript = Transcript()
            _ = freshetctl("help \(verb)", transcript)
            #expect(
                transcript.output.contains(
                    """
                      --config-dir <path>     A configuration directory, instead of the usual ones;
                                              may be given several times.

                    """), "\(transcript.output)")
        }
    }

    @Test("cat becomes the freshetd beside it, with directories and names")
    func cat() {
        let transcript = Transcript()
        let context = transcript.context(executable: ["/build/freshetd"], ownPath: "/build/freshetctl")
        #expect(Freshetctl.run(["cat", "jwks", "--config-dir", "/a", "--json"], context) == .failure)
        #expect(transcript.executed == ["/build/freshetd", "--cat", "--json", "--config-dir", "/a", "jwks"])
    }

    @Test("of a user's own daemon the user's configuration is meant, if there is one")
    func ownConfiguration() {
        func executed(_ line: String, existing: Set<String>, user: UInt32 = 1_000) -> [String] {
            let transcript = Transcript()
            let context = transcript.context(
                environment: ["XDG_RUNTIME_DIR": "/run/user/1000", "HOME": "/home/a"], user: user, existing: existing,
                executable: ["/usr/sbin/freshetd"])
            #expect(Freshetctl.run(line.split(separator: " ").map(String.init), context) == .failure)
            return Array(transcript.executed.dropFirst(2))
        }
        let systems: Set<String> = ["/run/freshet/io.freshet.Control", "/run/freshet-config", "/etc/freshet"]
        for verb in ["cat", "check", "run a --dry-run"] {
            #expect(
                executed(verb, existing: ["/home/a/.config/freshet"]) == ["--config-dir", "/home/a/.config/freshet"])
            // freshetd takes the system's where there is nothing else.
            #expect(executed(verb, existing: []).isEmpty)
            #expect(executed(verb, existing: systems).isEmpty)
            // It would take the user's own, and it is the system's daemon that is asked.
            #expect(
                executed(verb, existing: systems.union(["/home/a/.config/freshet"]))
                    == ["--config-dir", "/etc/freshet", "--config-dir", "/run/freshet-config"])
            #expect(executed(verb, existing: systems.union(["/home/a/.config/freshet"]), user: 0).isEmpty)
        }
    }

    @Test(
        "global options may stand before the verb",
        arguments: [
            ("--json status jwks", "status --json jwks"), ("--socket /s -q list", "list --socket /s -q"),
            ("--socket=/s list", "list --socket=/s"), ("status --json", "status --json"),
            ("--help status", "--help status"),
            ("--json", "--json"), ("--wait refresh x", "--wait refresh x"),
            ("--json signals fire x", "signals fire --json x"),
            ("--json signals --socket /s fire x", "signals fire --json --socket /s x"),
            ("signals --follow fire", "signals --follow fire"), ("-q signals", "signals -q"),
        ])
    func optionsBeforeVerb(line: String, expected: String) {
        let arguments = line.split(separator: " ").map(String.init)
        #expect(Freshetctl.verbFirst(arguments).joined(separator: " ") == expected)
    }

    /// What is said when the daemon does not answer at a path.
    private func hint(_ socket: String, isInstalled: Bool = true) -> String {
        let transcript = Transcript()
        let context = transcript.context(executable: isInstalled ? ["/usr/sbin/freshetd"] : [])
        #expect(Freshetctl.run(["status", "--socket", socket], context) == .notRunning)
        #expect(transcript.output.isEmpty)
        return transcript.talk
    }

    @Test("without a daemon: status 69, where it was looked for, and what to do")
    func notRunning() {
        #expect(
            hint("/run/freshet-is-not-here/s") == """
                freshetctl: freshetd does not run: nobody answers at '/run/freshet-is-not-here/s': No such file or directory
                Start it with 'systemctl start freshetd', at each boot with 'systemctl enable freshetd'.
                'systemctl status freshetd' says why it ended.

                """)
        #expect(hint("/run/user/4000000000/s").contains("'systemctl --user start freshetd'"))
        #expect(hint("/nonexistent/s").contains("Is that the right path?"))
        #expect(hint("/run/freshet-is-not-here/s", isInstalled: false).contains("It is not installed here either"))
        #expect(
            hint("/dev/null/s") == """
                freshetctl: freshetd does not run: nobody answers at '/dev/null/s': Not a directory
                Is that the right path? '--socket' and $FRESHET_SOCKET name another than the usual one.

                """)
    }

    @Test("a socket that a daemon left behind says that it was killed")
    func leftBehind() {
        let failure = CommandFailure(
            .notRunning("nobody answers at '/run/s': Connection refused", isSocketThere: true), socket: "/run/s",
            isInstalled: true, times: Times(now: 0, timeZone: { _ in (0, "UTC") }))
        #expect(failure.status == .notRunning)
        #expect(
            failure.message == """
                freshetd does not run: nobody answers at '/run/s': Connection refused
                It was killed, or crashed: 'systemctl status freshetd' says why.
                Start it with 'systemctl start freshetd'.
                """)
    }

    @Test("a socket that may not be opened is status 77, not 69")
    func noAccess() {
        let failure = CommandFailure(
            .noAccess("cannot connect to '/run/s': Permission denied"), socket: "/run/s", isInstalled: true,
            times: Times(now: 0, timeZone: { _ in (0, "UTC") }))
        #expect(failure.status == .notPermitted && failure.message.contains("check the rights"))
    }

    @Test("the socket is the one named, that of the environment, the system's, or the user's")
    func socketPath() {
        func path(_ environment: [String: String], user: UInt32 = 1_000, existing: Set<String> = []) -> String {
            SocketPath.find(Transcript().context(environment: environment, user: user, existing: existing))
        }
        let system = "/run/freshet/io.freshet.Control"
        let own = ["XDG_RUNTIME_DIR": "/run/user/1000"]
        #expect(path(["FRESHET_SOCKET": "/s", "XDG_RUNTIME_DIR": "/x"]) == "/s")
        #expect(path(own, existing: [system]) == system)
        let ownPath = "/run/user/1000/freshet/io.freshet.Control"
        #expect(path(own, existing: [ownPath]) == ownPath)
        #expect(path(own, existing: [ownPath, system]) == system)
        #expect(path(own, user: 0) == system)
        #expect(path([:]) == system)
        #expect(path(["FRESHET_SOCKET": "", "XDG_RUNTIME_DIR": ""]) == system)
    }

    @Test("--user means the caller's own daemon, whatever else there is")
    func ownSocket() {
        func talk(_ arguments: [String], _ environment: [String: String], user: UInt32 = 1_000) -> String {
            let transcript = Transcript()
            let context = transcript.context(
                environment: environment, user: user, existing: ["/run/freshet/io.freshet.Control"])
            #expect(Freshetctl.run(arguments, context) == .notRunning)
            return transcript.talk
        }
        let own = "nobody answers at '/nonexistent/freshet/io.freshet.Control'"
        let environment = ["XDG_RUNTIME_DIR": "/nonexistent", "FRESHET_SOCKET": "/other"]
        for arguments in [["status", "--user"], ["--user", "list", "--limit", "2"], ["--user", "is-fresh", "a"]] {
            #expect(talk(arguments, environment).contains(own))
        }
        #expect(talk(["--user", "list"], [:], user: 77).contains("'/run/user/77/freshet/io.freshet.Control'"))
    }

    @Test("when no daemon runs, a person who has configured none of their own is told of the system's")
    func noSocket() {
        func path(_ environment: [String: String], existing: Set<String> = []) -> String {
            let own = environment.merging(["XDG_RUNTIME_DIR": "/run/user/1000"]) { given, _ in given }
            return SocketPath.find(Transcript().context(environment: own, user: 1_000, existing: existing))
        }
        let system = "/run/freshet/io.freshet.Control"
        let own = "/run/user/1000/freshet/io.freshet.Control"
        #expect(path([:]) == system)
        #expect(path(["HOME": "/home/ada"]) == system)
        #expect(path(["HOME": "/home/ada"], existing: ["/home/ada/.config/freshet"]) == own)
        let elsewhere = ["HOME": "/home/ada", "XDG_CONFIG_HOME": "/c"]
        #expect(path(elsewhere, existing: ["/home/ada/.config/freshet"]) == system)
        #expect(path(elsewhere, existing: ["/c/freshet"]) == own)
    }

    @Test("check becomes the freshetd beside it, with the same directories")
    func check() {
        let transcript = Transcript()
        let context = transcript.context(
            executable: ["/build/freshetd", "/usr/bin/freshetd"], ownPath: "/build/freshetctl")
        #expect(Freshetctl.run(["check", "--config-dir", "/a", "--config-dir=/b"], context) == .failure)
        #expect(transcript.executed == ["/build/freshetd", "--check", "--config-dir", "/a", "--config-dir", "/b"])
        #expect(transcript.talk.contains("cannot execute '/build/freshetd': Exec format error"))
    }

    @Test("run becomes the freshetd beside it, with what belongs to a dry run; without --dry-run it says what does run")
    func dryRun() {
        let transcript = Transcript()
        let context = transcript.context(executable: ["/build/freshetd"], ownPath: "/build/freshetctl")
        let line = [
            "--json", "run", "jwks", "--dry-run", "--set", "a=b c", "--set=d=-", "-o", "-", "--detailed-exitcode",
            "--config-dir=/a", "--cache-dir", "/c", "-q",
        ]
        #expect(Freshetctl.run(line, context) == .failure)
        #expect(
            transcript.executed == [
                "/build/freshetd", "--dry-run=jwks", "--set", "a=b c", "--set", "d=-", "--output=-",
                "--detailed-exitcode", "--config-dir", "/a", "--cache-dir", "/c", "--json", "--quiet",
            ])
        let refused = Transcript()
        #expect(freshetctl("run jwks", refused) == .usage)
        #expect(refused.talk.contains("add --dry-run") && refused.talk.contains("freshetctl refresh jwks --wait"))
    }

    @Test("check finds the installed freshetd, and says where it looked if there is none")
    func checkInstalled() {
        let installed = Transcript()
        _ = Freshetctl.run(
            ["check"], installed.context(executable: ["/usr/libexec/freshetd"], ownPath: "/usr/bin/freshetctl"))
        #expect(installed.executed == ["/usr/libexec/freshetd", "--check"])
        let missing = Transcript()
        #expect(Freshetctl.run(["check"], missing.context()) == .failure)
        #expect(missing.executed.isEmpty && missing.talk.contains("/usr/libexec/freshetd"))
    }
}
