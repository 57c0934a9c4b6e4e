import FreshetConfiguration
import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import Glibc

/// Whether polkit permits the service to reload the units that hooks name, as far as a check can see it.
struct ReloadRights {
    private(set) var warnings: [HostEnvironmentError] = []
    /// What the process could not see, as sentences.
    private(set) var notChecked: [String] = []

    init(of configuration: Configuration, _ service: ServiceProcess.Search, _ options: DaemonOptions) {
        // Root needs no rule, and neither does a user's own service manager.
        guard options.checksSystemService, service.process?.user != 0, let rules = options.polkitRules else { return }
        let user = options.serviceUser(service)
        var unseen: [String: Set<String>] = [:]
        func check(_ unit: String?, of owner: String, isHook: Bool = false, _ keys: [String]) {
            guard let unit else { return }
            switch rules.permission(toReload: unit, user: user) {
            case .named: break
            case .unknown(let reason): unseen[reason, default: []].insert(unit)
            case .missing:
                warnings.append(
                    HostEnvironmentError(
                        pipeline: owner, isHook: isHook, keys: keys,
                        message:
                            "the hook may not reload \(unit): no rule of polkit permits it to the user \(user)",
                        remedy: "put the rule that 'freshetctl check --polkit' prints into \(Polkit.ruleFile)"))
            }
        }
        for definition in configuration.pipelines {
            for (index, hook) in definition.hooks.enumerated() {
                check(hook.unit, of: definition.name, ["on-change", "\(index)", "reload-unit"])
            }
        }
        for hook in configuration.hooks { check(hook.action.unit, of: hook.name, isHook: true, ["reload-unit"]) }
        notChecked = unseen.sorted { $0.key < $1.key }.map { reason, units in
            "whether polkit permits the service to reload \(units.sorted().joined(separator: ", ")): \(reason); "
                + "'freshetctl check --polkit' prints the rule"
        }
    }
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
