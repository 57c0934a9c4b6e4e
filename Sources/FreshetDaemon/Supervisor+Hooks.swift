import FreshetCache
import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemSignals
import FreshetSystemd
import Glibc

/// What is run after changes.
extension Supervisor {
    /// - Parameter index: how it was found at the start.
    func makeHookDesk(
        _ store: CacheStore, _ index: RecoveryReport.Index, _ systemBus: BusConnection
    ) async throws -> HookScheduler {
        switch index {
        case .made, .rebuilt: areHooksForgotten = true
        case .opened, .migrated: break
        }
        let files = hookFiles
        try await pools.programs.run { try files.prepare() }
        let transformer = JQTransformer(loop, workers: pools.helpers)
        let world = HookScheduler.World(
            store: store,
            difference: { [loop] old, new, key in
                try? await ContentDifference.between(old, and: new, key: key, by: transformer, on: loop)
            },
            programs: programs,
            units: UnitReloader(loop, systemBus, isPersonal: !Self.isSystemService(options), clock: clock),
            workers: pools.programs, files: files,
            clock: clock, log: log,
            news: news, redactor: redactor, readers: readers, adopt: { [weak self] job in self?.adopt(job) },
            statusChanged: { [weak self] in self?.statusMayHaveChanged() })
        return HookScheduler(world, seed: UInt64.random(in: 0 ... .max))
    }

    var hookFiles: ProgramInputFiles {
        ProgramInputFiles(directory: directories.state + "/hooks", prefix: "change-", suffix: ".json")
    }

    var checkFiles: ProgramInputFiles {
        ProgramInputFiles(directory: directories.state + "/checks", prefix: "candidate-", suffix: "")
    }

    /// Runs hooks and checks.
    var programs: TrustedPrograms {
        TrustedPrograms(
            commands: CommandRunner(loop, workers: pools.programs), workers: pools.programs, trust: Self.trust(options))
    }

    /// Those who help with checks.
    func makeCheckHelpers() async throws -> CheckHelpers {
        let files = checkFiles
        try await pools.programs.run { try files.prepare() }
        return CheckHelpers(
            prover: ContentVerifier(workers: pools.proofs),
            inspector: CandidateInspector(programs, files) { [news, log, readers] saying, pipeline, command in
                // A check may quote the content that it is given.
                guard readers.isPublic(pipeline) else { return }
                saying.tell(of: command, of: pipeline, news, log)
            })
    }

    /// What may be run as a hook or a check, as the service itself sees it.
    static func trust(_ options: DaemonOptions) -> PathTrust {
        PathTrust(user: geteuid(), isPersonal: !isSystemService(options))
    }

    /// Has the hooks of these pipelines told of what changes from now on, and of what is owed.
    func assignHooks(of definitions: [PipelineDefinition]) async {
        guard let parts, !definitions.isEmpty else { return }
        // With a new index nobody knows what they were told of: of what is there, they are told once more.
        let all = definitions.map { definition in
            let told = areHooksForgotten ? nil : current(definition)?.mark
            return (pipeline: definition.name, hooks: definition.hooks, told: told)
        }
        let memories = await parts.store.assignHooks(all)
        for definition in definitions {
            // What was committed meanwhile is what they are to be told of.
            parts.hooks.configure(definition, memories[definition.name] ?? [:], current: current(definition))
        }
    }

    /// A pipeline is configured no more: should it be again, its hooks are new.
    func forgetHooks(of name: String) async {
        guard pipelines[name]?.definition.hooks.isEmpty == false else { return }
        _ = await parts?.store.assignHooks([(pipeline: name, hooks: [], told: nil)])
    }

    /// What readers see of a pipeline that has hooks, or do not see any more.
    private func current(_ definition: PipelineDefinition) -> CurrentGeneration? {
        definition.hooks.isEmpty ? nil : pipelines[definition.name]?.runner.status.kept
    }

    /// Hooks of a pipeline whose configuration has changed.
    func assignHooks(of definition: PipelineDefinition, before: PipelineDefinition?) async {
        if definition.hooks != before?.hooks ?? [] { await assignHooks(of: [definition]) }
    }
}

extension FreshetControl.PendingHook {
    init(_ debt: HookMachine.PendingRun) {
        self.init(
            hook: debt.hook.text, generation: Int64(clamping: debt.generation), running: debt.isRunning,
            attempts: Int64(debt.memory.attempts), since: debt.memory.failingSince, error: debt.memory.error,
            next: debt.next.map(WallClock.microseconds(at:)))
    }
}
