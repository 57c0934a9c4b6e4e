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
        "an unknown verb is an error with a similar verb",
        arguments: [
            ("statsu", "there is no verb 'statsu'; did you mean 'status'?"),
            ("--json lst", "there is no verb 'lst'; did you mean 'list'?"),
            ("--socket /s refrsh x", "there is no verb 'refrsh'; did you mean 'refresh'?"),
            ("teleportation", "there is no verb 'teleportation'\n"),
            ("a\u{1B}[31m\u{202E}", "there is no verb 'a\\u{1b}[31m\\u{202e}'\n"),
            ("help statsu", "there is no verb 'statsu'; did you mean 'status'?"),
            ("help signals teleportation", "there is no verb 'teleportation'\n"),
        ])
    func unknownVerb(line: String, expected: String) {
        let transcript = Transcript()
        #expect(freshetctl(line, transcript, socket: "/nonexistent/s") == .usage)
        #expect(transcript.printError.contains(expected))
        #expect(transcript.output.isEmpty)
    }

    @Test(
        "a wrong command line is status 64, and says why on standard error",
        arguments: [
            "status --no-such-option", "signals fire", "signals fier network", "refresh", "refresh --all jwks",
            "refresh jwks --timeout 3s", "get",
            "get a b", "signals x",
            "--no-such-option", "log-level loud", "log-level 8", "log-level info debug",
            "get a --file b --json", "list --socket", "list --socket=", "refresh a --user --socket /s",
            "run", "run --dry-run", "run a b --dry-run",
            "is-fresh", "wait", "wait a --fresh --state loaded", "wait a --timeout soon", "wait a --state gone",
            "wait a --generation 0", "logs -n -1", "status -n x", "list --limit 0", "list --state", "edit",
            "edit a --from b", "edit --new --drop-in a", "edit --examples a", "edit --hook",
            "diagnose", "completions",
            "completions csh", "report --json", "report --limit 0", "report --output=", "record --output=",
        ])
    func usage(line: String) {
        let transcript = Transcript()
        #expect(freshetctl(line, transcript, socket: "/nonexistent/s") == .usage)
        #expect(!transcript.printError.isEmpty && transcript.output.isEmpty)
    }

    @Test(
        "an unknown option has a suggestion only if that is similar",
        arguments: [
            ("list --foo", "Unknown option '--foo'.\n"), ("refresh a --foo", "Unknown option '--foo'.\n"),
            ("refresh a --fores", "Unknown option '--fores'. Did you mean '--force'?"),
            ("list --jsno", "Unknown option '--jsno'. Did you mean '--json'?"),
        ])
    func unknownOption(line: String, expected: String) {
        let transcript = Transcript()
        #expect(freshetctl(line, transcript, socket: "/nonexistent/s") == .usage)
        #expect(transcript.printError.contains(expected), "\(transcript.printError)")
    }

    @Test(
        "a message on standard error has no control characters, whatever the arguments are",
        arguments: [
            (["--foo\u{1B}[2J"], "Unknown option '--foo\\u{1b}[2J'"),
            (["list", "--foo\u{1B}]0;x\u{7}"], "Unknown option '--foo\\u{1b}]0;x\\u{7}'"),
            (["list", "--state", "\u{1B}c"], "\\u{1b}c"), (["-\u{9B}2J"], "\\u{9b}"),
            (["wait", "a", "--timeout", "1\u{8}s"], "1\\u{8}s"), (["log-level", "de\u{1B}[1mbug"], "\\u{1b}[1m"),
            (["list", "--socket", "/nonexistent/\u{1B}[31m\u{202E}"], "/nonexistent/\\u{1b}[31m\\u{202e}"),
            (["get", "a\u{1B}[2J\r\n"], "freshetd does not run"), (["help", "\u{1B}[2J"], "\\u{1b}[2J"),
            (["refresh", "a", "\u{1B}[2J", "--timeout", "3s"], ""),
            (["report", "a", "--output", "/nonexistent/\u{1B}[2J"], ""),
        ])
    func hostileArguments(arguments: [String], expected: String) {
        let transcript = Transcript()
        #expect(freshetctl(arguments, transcript, socket: "/nonexistent/\u{1B}s") != .success)
        #expect(expected.isEmpty || transcript.printError.contains(expected), "\(transcript.printError)")
        #expect(
            transcript.printError.unicodeScalars.allSatisfy {
                $0 == "\n" || !(0..<0x20).contains($0.value) && $0 != "\u{9B}"
            },
            "\(transcript.printError.debugDescription)")
    }

    @Test("a misspelt log level is an error with a similar level")
    func misspeltLevel() {
        let transcript = Transcript()
        #expect(freshetctl("log-level debgu", transcript, socket: "/nonexistent/s") == .usage)
        #expect(transcript.printError.contains("'debgu' is not a log level; did you mean 'debug'?"))
    }

    @Test(
        "help goes to standard output and is a success", arguments: ["--help", "help", "status --help", "help refresh"])
    func help(line: String) {
        let transcript = Transcript()
        #expect(freshetctl(line, transcript) == .success)
        #expect(transcript.output.contains("USAGE: freshetctl") && transcript.printError.isEmpty)
    }

    @Test("the verbs are grouped, each with a line in the imperative, and fit a terminal of 80 columns")
    func helpText() {
        let transcript = Transcript()
        _ = freshetctl("--help", transcript)
        let rows = transcript.output.split(separator: "\n").drop { $0 != "STATUS SUBCOMMANDS:" }
        #expect(
            rows.joined(separator: "\n") == """
                STATUS SUBCOMMANDS:
                \u{20} status                  Show the daemon and all pipelines, or one in detail.
                \u{20} list (default)          List the pipelines, one per line.
                \u{20} diagnose                Find out why a pipeline is stuck, and what to do.
                \u{20} logs                    Show the journal of pipelines, or of the daemon.
                \u{20} top                     Show pipelines live on a terminal.
                \u{20} monitor                 Print signals, runs and states as they happen.
                \u{20} signals                 List, follow or fire signals.
                \u{20} is-fresh                Succeed if copies are fresh, for monitoring.
                \u{20} wait                    Wait until pipelines are fresh, or in a state.
                \u{20} show                    Print properties as NAME=VALUE lines, for scripts.
                \u{20} graph                   Draw how signals lead to pipelines, files and hooks.
                \u{20} timeline                Draw signals and runs over time.
                \u{20} marbles                 Draw which signals caused which runs of a pipeline.
                \u{20} report                  Write the state of all pipelines as a web page.
                \u{20} record                  Record signals, facts and runs for a replay.
                REFRESH SUBCOMMANDS:
                \u{20} refresh                 Run pipelines now.
                \u{20} hold                    Stop pipelines from running.
                \u{20} release                 Allow held pipelines to run again.
                \u{20} set                     Set or show the parameters of a pipeline.
                \u{20} unset                   Reset parameters of a pipeline to their defaults.
                \u{20} load-more               Load a further page.
                GENERATIONS SUBCOMMANDS:
                \u{20} get                     Print the content of a copy.
                \u{20} history                 List kept and removed generations.
                \u{20} diff                    Show how two generations of a pipeline differ.
                \u{20} rollback                Publish an earlier generation again.
                \u{20} pin                     Keep the current copy of a pipeline.
                \u{20} unpin                   Allow a pinned copy to be replaced again.
                \u{20} accept                  Publish content that a check rejected.
                \u{20} watch                   Print a copy and each change of it.
                CONFIGURATION SUBCOMMANDS:
                \u{20} edit                    Edit a pipeline or hook, check it, install it, reload.
                \u{20} check                   Check the configuration files.
                \u{20} reload                  Reload the configuration of the daemon.
                \u{20} run                     Try a pipeline without publishing.
                \u{20} cat                     Print the configuration files.
                SERVICE SUBCOMMANDS:
                \u{20} metrics                 Print metrics for Prometheus, or write them to a file.
                \u{20} log-level               Show or change the log level of the daemon.
                \u{20} fsck                    Check and repair the cache.
                \u{20} fleet                   Show, control, set up and examine a fleet.
                \u{20} prune                   Remove copies of pipelines that are not configured.
                \u{20} completions             Print the completion script for a shell.
                \u{20} See 'freshetctl help <subcommand>' for detailed help.
                """)
        #expect(transcript.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
    }

    @Test("help lists all verbs")
    func allVerbs() {
        let transcript = Transcript()
        _ = freshetctl("--help", transcript)
        for verb in ["status", "list", "refresh", "get", "monitor", "signals", "reload", "log-level", "check"] {
            #expect(transcript.output.contains("  \(verb) "))
        }
    }

    @Test("each verb has an explicit name, because deriving it takes a fifth of the start time")
    func names() {
        #expect(FreshetctlCommand.configuration.subcommands.allSatisfy { $0.configuration.commandName != nil })
    }

    @Test("the help of each verb has examples and fits a terminal of 80 columns, except its usage")
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
        "a usage with several forms has one line for each",
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

    @Test("all verbs that read the configuration have the same option for its directories")
    func configurationDirectories() {
        for verb in ["cat", "check", "edit", "run"] {
            let transcript = Transcript()
            _ = freshetctl("help \(verb)", transcript)
            #expect(
                transcript.output.contains(
                    """
                      --config-dir <path>     Use this configuration directory, not the usual ones;
                                              may be given several times.

                    """), "\(transcript.output)")
        }
    }

    @Test("cat executes the freshetd beside it, with directories and names")
    func cat() {
        let transcript = Transcript()
        let context = transcript.context(executable: ["/build/freshetd"], ownPath: "/build/freshetctl")
        #expect(Freshetctl.run(["cat", "jwks", "--config-dir", "/a", "--json"], context) == .failure)
        #expect(transcript.executed == ["/build/freshetd", "--cat", "--json", "--config-dir", "/a", "jwks"])
    }

    @Test("with a user's own daemon, the user's configuration is used if it exists")
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
        for verb in ["cat", "check", "run a"] {
            #expect(
                executed(verb, existing: ["/home/a/.config/freshet"]) == ["--config-dir", "/home/a/.config/freshet"])
            // freshetd uses the system's directories if there are no others.
            #expect(executed(verb, existing: []).isEmpty)
            #expect(executed(verb, existing: systems).isEmpty)
            // freshetd would use the user's own directory, but freshetctl contacts the system's daemon.
            #expect(
                executed(verb, existing: systems.union(["/home/a/.config/freshet"]))
                    == ["--config-dir", "/etc/freshet", "--config-dir", "/run/freshet-config"])
            #expect(executed(verb, existing: systems.union(["/home/a/.config/freshet"]), user: 0).isEmpty)
        }
    }

    @Test(
        "global options may precede the verb",
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

    /// The error message if no daemon answers at a path.
    private func hint(_ socket: String, isInstalled: Bool = true) -> String {
        let transcript = Transcript()
        let context = transcript.context(executable: isInstalled ? ["/usr/sbin/freshetd"] : [])
        #expect(Freshetctl.run(["status", "--socket", socket], context) == .notRunning)
        #expect(transcript.output.isEmpty)
        return transcript.printError
    }

    @Test("without a daemon: status 69, the path of the socket, and the remedy")
    func notRunning() {
        #expect(
            hint("/run/freshet-is-not-here/s") == """
                freshetctl: freshetd does not run: cannot connect to '/run/freshet-is-not-here/s': No such file or directory
                Start it with 'systemctl start freshetd', at each boot with 'systemctl enable freshetd'.
                'systemctl status freshetd' shows why it ended.

                """)
        #expect(hint("/run/user/4000000000/s").contains("'systemctl --user start freshetd'"))
        #expect(hint("/nonexistent/s").contains("Check the path:"))
        #expect(
            hint("/run/freshet-is-not-here/s", isInstalled: false).contains("It is not installed beside freshetctl"))
        #expect(
            hint("/dev/null/s") == """
                freshetctl: freshetd does not run: cannot connect to '/dev/null/s': Not a directory
                Check the path: '--socket' or $FRESHET_SOCKET names it.

                """)
    }

    @Test("for a socket that a daemon left behind, the error says that it was killed")
    func leftBehind() {
        let failure = CommandFailure(
            .notRunning("cannot connect to '/run/s': Connection refused", isSocketThere: true), socket: "/run/s",
            isInstalled: true, times: Times(now: 0, timeZone: { _ in (0, "UTC") }))
        #expect(failure.status == .notRunning)
        #expect(
            failure.message == """
                freshetd does not run: cannot connect to '/run/s': Connection refused
                It was killed or crashed: 'systemctl status freshetd' shows why.
                Start it with 'systemctl start freshetd'.
                """)
    }

    @Test("a socket without access is status 77, not 69")
    func noAccess() {
        let failure = CommandFailure(
            .noAccess("cannot connect to '/run/s': Permission denied"), socket: "/run/s", isInstalled: true,
            times: Times(now: 0, timeZone: { _ in (0, "UTC") }))
        #expect(failure.status == .notPermitted && failure.message.contains("check the rights"))
    }

    @Test("the socket is that of the option, of the environment, of the system, or of the user")
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

    @Test("--user always means the caller's own daemon")
    func ownSocket() {
        func printError(_ arguments: [String], _ environment: [String: String], user: UInt32 = 1_000) -> String {
            let transcript = Transcript()
            let context = transcript.context(
                environment: environment, user: user, existing: ["/run/freshet/io.freshet.Control"])
            #expect(Freshetctl.run(arguments, context) == .notRunning)
            return transcript.printError
        }
        let own = "cannot connect to '/nonexistent/freshet/io.freshet.Control'"
        let environment = ["XDG_RUNTIME_DIR": "/nonexistent", "FRESHET_SOCKET": "/other"]
        for arguments in [["status", "--user"], ["--user", "list", "--limit", "2"], ["--user", "is-fresh", "a"]] {
            #expect(printError(arguments, environment).contains(own))
        }
        #expect(printError(["--user", "list"], [:], user: 77).contains("'/run/user/77/freshet/io.freshet.Control'"))
    }

    @Test("without a daemon, a user without a configuration gets the remedy for the system's daemon")
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

    @Test("check executes the freshetd beside it, with the same directories")
    func check() {
        let transcript = Transcript()
        let context = transcript.context(
            executable: ["/build/freshetd", "/usr/bin/freshetd"], ownPath: "/build/freshetctl")
        #expect(Freshetctl.run(["check", "--config-dir", "/a", "--config-dir=/b"], context) == .failure)
        #expect(transcript.executed == ["/build/freshetd", "--check", "--config-dir", "/a", "--config-dir", "/b"])
        #expect(transcript.printError.contains("cannot execute '/build/freshetd': Exec format error"))
        // The daemon whose groups and credentials count.
        #expect(Freshetctl.run(["check", "--socket", "/s"], context) == .failure)
        #expect(transcript.executed == ["/build/freshetd", "--check", "--socket", "/s"])
    }

    @Test("run executes the freshetd beside it with the options of a dry run, with or without --dry-run")
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
        #expect(Freshetctl.run(["run", "jwks"], context) == .failure)
        #expect(transcript.executed == ["/build/freshetd", "--dry-run=jwks"])
    }

    @Test("check finds the installed freshetd, or prints where it searched")
    func checkInstalled() {
        let installed = Transcript()
        _ = Freshetctl.run(
            ["check"], installed.context(executable: ["/usr/libexec/freshetd"], ownPath: "/usr/bin/freshetctl"))
        #expect(installed.executed == ["/usr/libexec/freshetd", "--check"])
        let missing = Transcript()
        #expect(Freshetctl.run(["check"], missing.context()) == .failure)
        #expect(missing.executed.isEmpty && missing.printError.contains("/usr/libexec/freshetd"))
    }
}
