import ArgumentParser
import FreshetControl
import FreshetRender

/// The command line of `freshetctl`.
struct FreshetctlCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "freshetctl",
        abstract: "Inspect and control freshetd.",
        discussion: """
            Without a verb, lists the pipelines. Exit status: 0 success, 1 failure, 2 a difference ('run \
            --detailed-exitcode'), 64 wrong usage, 66 nothing more to load, 69 the daemon does not run, 75 try again \
            later, 77 permission denied, 78 configuration error.
            """,
        version: Version.current,
        // In each group the verbs that are used most come first.
        groupedSubcommands: [
            CommandGroup(
                name: "Status",
                subcommands: [
                    Status.self, List.self, Diagnose.self, Logs.self, Top.self, Monitor.self, Signals.self,
                    IsFresh.self,
                    Wait.self, Show.self, Graph.self, TimelineVerb.self, Marbles.self,
                    Report.self, Record.self,
                ]),
            CommandGroup(
                name: "Refresh",
                subcommands: [
                    Refresh.self, Hold.self, Release.self, SetVerb.self, Unset.self, LoadMore.self,
                ]),
            CommandGroup(
                name: "Generations",
                subcommands: [
                    Get.self, History.self, Diff.self, Rollback.self, Pin.self, Unpin.self, Accept.self, Watch.self,
                ]),
            CommandGroup(
                name: "Configuration",
                subcommands: [Edit.self, Check.self, Reload.self, Run.self, Cat.self]),
            CommandGroup(
                name: "Service",
                subcommands: [
                    Metrics.self, LogLevelVerb.self, Fsck.self, FleetVerb.self, Prune.self, Completions.self,
                ]),
        ],
        defaultSubcommand: List.self)
}

/// `freshetctl` as a function: arguments in, exit status out, everything else through the context.
package enum Freshetctl {
    /// - Parameter arguments: without the program's own name.
    package static func run(_ arguments: [String], _ context: CommandContext) -> ExitStatus {
        if arguments.first == Completion.argument { return Completion.answer(Array(arguments.dropFirst()), context) }
        let status = perform(
            arguments, context.inCharset(.choose(environment: context.environment)).withHarmlessErrors)
        guard let reason = context.outputFailure() else { return status }
        context.printError("freshetctl: cannot write the output: \(reason)\n")
        return status == .success ? .failure : status
    }

    private static func perform(_ arguments: [String], _ context: CommandContext) -> ExitStatus {
        if let line = PlainCommandLine(arguments) { return run(line.run, line.options, context) }
        // Before parsing: the parser takes an unknown verb for an argument of the default verb.
        if let stray = unknownVerb(arguments) {
            let meant = NameSuggestion.closest(to: stray, among: verbs).map { "; did you mean '\($0)'?" } ?? ""
            let shown = DisplayText.harmless(stray)
            context.printError(
                "freshetctl: there is no verb '\(shown)'\(meant)\nSee 'freshetctl --help' for the verbs.\n")
            return .usage
        }
        let command: any ParsableCommand
        do {
            let arguments = verbFirst(arguments)
            // Errors and help need the parser of the whole command line.
            command = try parsedVerb(arguments) ?? FreshetctlCommand.parseAsRoot(arguments)
        } catch {
            return report(error, context)
        }
        guard let verb = command as? any Verb else {
            // Only the parser's own help command is not a ``Verb``.
            var command = command
            do {
                try command.run()
                return .success
            } catch {
                return report(error, context)
            }
        }
        return run(verb.run, verb.options.values, context)
    }

    private static func run(
        _ verb: (Session) throws(CommandFailure) -> Void, _ options: SessionOptions, _ context: CommandContext
    ) -> ExitStatus {
        do throws(CommandFailure) {
            try verb(Session(context: context, options: options))
            return .success
        } catch {
            if !error.message.isEmpty { context.printError("freshetctl: \(error.message)\n") }
            return error.status
        }
    }

    /// Help goes to standard output and is a success; a usage error goes to standard error.
    private static func report(_ error: any Error, _ context: CommandContext) -> ExitStatus {
        let message = FreshetctlCommand.fullMessage(for: error)
        if FreshetctlCommand.exitCode(for: error) == .success {
            context.output(message + "\n")
            return .success
        }
        context.printError(withoutFarSuggestion(message) + "\n")
        return .usage
    }

    /// The message of the parser about an unknown option, without a suggestion that differs in more than a third of its
    /// letters: the parser also suggests `--json` for `--foo`.
    static func withoutFarSuggestion(_ message: String) -> String {
        guard let start = message.firstRange(of: "Unknown option '"),
            let middle = message[start.upperBound...].firstRange(of: "'. Did you mean '"),
            let end = message[middle.upperBound...].firstRange(of: "'?")
        else { return message }
        let unknown = String(message[start.upperBound..<middle.lowerBound].drop { $0 == "-" })
        let suggested = String(message[middle.upperBound..<end.lowerBound].drop { $0 == "-" })
        guard NameSuggestion.closest(to: unknown, among: [suggested]) == nil else { return message }
        return message[..<middle.lowerBound] + "'." + message[end.upperBound...]
    }

    static var verbs: [String] {
        FreshetctlCommand.configuration.subcommands.map { $0._commandName } + ["help"]
    }

    /// Parses the arguments with the parser of the verb alone if the first argument is a verb: that takes half the time
    /// of parsing with all verbs. Nil if the first argument is not a verb, or if the arguments are wrong.
    private static func parsedVerb(_ arguments: [String]) -> (any ParsableCommand)? {
        let verb = FreshetctlCommand.configuration.subcommands.first { $0._commandName == arguments.first }
        guard let verb, verb.configuration.subcommands.isEmpty else { return nil }
        return try? verb.parse(Array(arguments.dropFirst()))
    }

    /// The index of the first argument that is not an option.
    private static func verbIndex(_ arguments: [String]) -> Int? {
        var index = 0
        while index < arguments.count {
            let argument = arguments[index]
            if GlobalOptions.withValue.contains(argument) {
                index += 2
            } else if argument.hasPrefix("-") {
                index += 1
            } else {
                return index
            }
        }
        return nil
    }

    private static func unknownVerb(_ arguments: [String]) -> String? {
        guard let index = verbIndex(arguments) else { return nil }
        guard verbs.contains(arguments[index]) else { return arguments[index] }
        // Without this check, help for an unknown verb would be the help of freshetctl.
        guard arguments[index] == "help" else { return nil }
        var known = FreshetctlCommand.configuration.subcommands
        for word in arguments[(index + 1)...] where !word.hasPrefix("-") && word != "help" {
            guard let next = known.first(where: { $0._commandName == word }) else { return word }
            known = next.configuration.subcommands
        }
        return nil
    }

    /// Moves global options from before a verb to after it, also for the verb of a verb: the parser accepts them only
    /// there.
    static func verbFirst(_ arguments: [String]) -> [String] {
        verbFirst(arguments, FreshetctlCommand.self)
    }

    private static func verbFirst(_ arguments: [String], _ command: any ParsableCommand.Type) -> [String] {
        let verbs = command.configuration.subcommands
        guard let index = verbIndex(arguments),
            let verb = verbs.first(where: { $0._commandName == arguments[index] })
        else { return arguments }
        let before = arguments[..<index]
        let isGlobal = before.allSatisfy { argument in
            !argument.hasPrefix("-") || GlobalOptions.flags.contains(argument)
                || GlobalOptions.withValue.contains { argument == $0 || argument.hasPrefix($0 + "=") }
        }
        guard isGlobal else { return arguments }
        return [arguments[index]] + verbFirst(Array(before + arguments[(index + 1)...]), verb)
    }
}
