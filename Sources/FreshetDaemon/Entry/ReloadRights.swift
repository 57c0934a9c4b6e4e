import FreshetConfiguration
import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import Glibc

/// Whether polkit permits the service what hooks do with units, as far as a check can see it: root asks polkit itself if
/// the service runs, and otherwise the rules are read.
struct ReloadRights {
    private(set) var warnings: [HostEnvironmentError] = []
    /// What the process could not see, as sentences.
    private(set) var notChecked: [String] = []

    /// What a hook does with a unit.
    private struct Use {
        var question: PolkitAuthority.Question
        var owner: String
        var isHook = false
        var keys: [String]
        /// Whether it is a command, not `reload-unit`.
        var isCommand = false
    }

    init(of configuration: Configuration, _ service: ServiceProcess.Search, _ options: DaemonOptions) {
        // Root needs no rule, and neither does a user's own service manager.
        guard options.checksSystemService, service.process?.user != 0, let rules = options.polkitRules else { return }
        let user = options.serviceUser(service)
        let uses = Self.uses(in: configuration)
        var answers: [PolkitAuthority.Question: PolkitAuthority.Answer] = [:]
        if let process = service.process, let authority = options.polkitAuthority, !uses.isEmpty {
            answers = authority.answers(
                Set(uses.map(\.question)).sorted { ($0.unit, $0.verb) < ($1.unit, $1.verb) }, about: process)
        }
        var unseen: [String: [String: Set<String>]] = [:]
        // 'check --polkit' prints no rule for commands.
        var haveRule: Set<String> = []
        func add(_ reason: String, _ use: Use) {
            unseen[reason, default: [:]][use.question.verb, default: []].insert(use.question.unit)
            if !use.isCommand { haveRule.insert(reason) }
        }
        for use in uses {
            let unit = use.question.unit
            switch answers[use.question] {
            case .permitted: break
            case .refused: warn(about: use, "polkit refuses it to the user \(user)")
            // Nothing else can be said about a command: the text of a rule has the unit, but perhaps for another verb.
            case .unknown(let reason) where use.isCommand: add(reason, use)
            case nil where use.isCommand: break
            case let answer:
                switch rules.permission(toReload: unit, user: user) {
                case .named:
                    // The rule does not help if polkit does not run.
                    if case .unknown(let reason)? = answer { add(reason, use) }
                case .unknown(let reason): add(reason, use)
                case .missing: warn(about: use, "no rule of polkit permits it to the user \(user)")
                }
            }
        }
        notChecked = unseen.sorted { $0.key < $1.key }.map { reason, verbs in
            let uses = verbs.sorted { $0.key < $1.key }.map { verb, units in
                "\(verb) \(units.sorted().joined(separator: ", "))"
            }
            return "whether polkit permits the service to \(uses.joined(separator: ", and to ")): \(reason)"
                + (haveRule.contains(reason) ? "; 'freshetctl check --polkit' prints the rule" : "")
        }
    }

    private mutating func warn(about use: Use, _ reason: String) {
        let unit = use.question.unit
        warnings.append(
            HostEnvironmentError(
                pipeline: use.owner, isHook: use.isHook, keys: use.keys,
                message: "the hook may not \(use.question.verb) \(unit): \(reason)",
                remedy: use.isCommand
                    ? "use a path unit, which runs the command as root (freshet-changed@), or write a rule"
                    : "put the rule that 'freshetctl check --polkit' prints into \(Polkit.ruleFile)"))
    }

    /// What hooks do with units: `reload-unit`, and commands that are plain calls of systemctl(1).
    private static func uses(in configuration: Configuration) -> [Use] {
        func uses(_ hook: HookDefinition, of owner: String, isHook: Bool = false, _ keys: [String]) -> [Use] {
            if let unit = hook.unit {
                return [
                    Use(
                        question: .init(verb: "reload", unit: unit), owner: owner, isHook: isHook,
                        keys: keys + ["reload-unit"])
                ]
            }
            guard let command = UnitCommand(hook.command) else { return [] }
            return command.units.map {
                Use(
                    question: .init(verb: command.verb, unit: $0), owner: owner, isHook: isHook, keys: keys + ["exec"],
                    isCommand: true)
            }
        }
        return configuration.pipelines.flatMap { definition in
            definition.hooks.enumerated().flatMap { uses($1, of: definition.name, ["on-change", "\($0)"]) }
        } + configuration.hooks.flatMap { uses($0.action, of: $0.name, isHook: true, []) }
    }

    /// Whether a hook does something with a unit, so that the process of the service is needed.
    static func areNeeded(by configuration: Configuration) -> Bool { !uses(in: configuration).isEmpty }
}

extension DaemonOptions {
    /// The name of the service's user: that of its process, otherwise the user to which root changes, otherwise that of
    /// the unit. Blocks on the name service.
    fileprivate func serviceUser(_ service: ServiceProcess.Search) -> String {
        if let user = service.process?.user { return Polkit.name(of: user) }
        return user ?? "freshet"
    }
}

extension DaemonEntry {
    /// Prints the rule by which polkit permits the hooks of these pipelines to reload their units, including hooks of
    /// several pipelines; without names, of all pipelines. If there is none to print, it prints only the reason, on
    /// standard error.
    package static func printPolkitRule(_ names: [String], _ options: DaemonOptions) -> DaemonExit {
        func fail(_ text: String, _ exit: DaemonExit = .failure) -> DaemonExit {
            StandardStream.write("freshetd: \(PlainText.escaping(text))\n", to: STDERR_FILENO)
            return exit
        }
        let configuration = ConfigurationLocation.loader(options).load()
        guard configuration.isValid else {
            return fail("the configuration has errors, so hooks may be missing; see 'freshetctl check'", .configuration)
        }
        guard options.checksSystemService else {
            return fail("no rule is needed: a user's own service may reload that user's units")
        }
        guard names.filter(GlobPattern.isPattern).allSatisfy({ $0.utf8.count <= PipelineSelection.patternBytesLimit })
        else { return fail("a pattern has more than \(PipelineSelection.patternBytesLimit) bytes", .usage) }
        let all = configuration.pipelines
        for name in names where PipelineSelection.ordered(all, as: [name], by: \.name).isEmpty {
            let suggestion = NameSuggestion.closest(to: name, among: all.map(\.name))
            return fail("there is no pipeline '\(name)'" + (suggestion.map { "; did you mean '\($0)'?" } ?? ""))
        }
        let selected = names.isEmpty ? all : PipelineSelection.ordered(all, as: names, by: \.name)
        let selectedNames = Set(selected.map(\.name))
        let shared = configuration.hooks.filter { names.isEmpty || !selectedNames.isDisjoint(with: $0.pipelines) }
        let units = Set(
            selected.flatMap { $0.hooks.compactMap(\.unit) } + shared.compactMap(\.action.unit)
        ).sorted()
        guard !units.isEmpty else { return fail("no rule is needed: no hook has 'reload-unit'") }
        let rule = Polkit.rule(for: units, user: options.serviceUser(ServiceProcess.find(options)))
        return StandardStream.answer(rule) ? .success : .failure
    }
}
