import FreshetCache
import FreshetControl
import FreshetEmitters
import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import FreshetSystemSignals
import FreshetSystemd
import Glibc

/// Hooks, which run after changes, and checks.
extension Supervisor {
    /// - Parameter index: the state of the index at the start.
    func makeHookScheduler(
        _ store: CacheStore, _ index: RecoveryReport.Index, _ systemBus: BusConnection
    ) async throws -> HookScheduler {
        switch index {
        case .made, .rebuilt: isHookStateLost = true
        case .opened, .migrated: break
        }
        let files = hookFiles
        try await pools.programs.run { try files.prepare() }
        let transformer = JQTransformer(loop, workers: pools.helpers)
        let dependencies = HookScheduler.Dependencies(
            store: store,
            difference: { [loop] old, new, key in
                try? await ContentDifference.between(old, and: new, key: key, by: transformer, on: loop)
            },
            programs: programs,
            units: UnitReloader(loop, systemBus, isPersonal: !options.isSystemService, clock: clock),
            workers: pools.programs, files: files,
            clock: clock, log: log,
            limiter: limiter, redactor: redactor, readers: readers, adopt: { [weak self] job in self?.adopt(job) },
            statusChanged: { [weak self] in self?.status.mayHaveChanged() })
        return HookScheduler(dependencies, seed: UInt64.random(in: 0 ... .max))
    }

    nonisolated private static let hookDirectory = "hooks"
    nonisolated private static let checkDirectory = "checks"

    /// The names of the directories for programs in the state directory, including renamed ones.
    nonisolated static var programDirectories: [String] {
        [hookDirectory, checkDirectory].flatMap { [$0, $0 + ProgramInputFiles.formerSuffix] }
    }

    var hookFiles: ProgramInputFiles {
        ProgramInputFiles(directory: directories.state + "/" + Self.hookDirectory, prefix: "change-", suffix: ".json")
    }

    var checkFiles: ProgramInputFiles {
        ProgramInputFiles(directory: directories.state + "/" + Self.checkDirectory, prefix: "candidate-", suffix: "")
    }

    /// Runs the programs of hooks and checks.
    var programs: TrustedPrograms {
        TrustedPrograms(
            commands: CommandRunner(loop, workers: pools.programs), workers: pools.programs, trust: options.trust)
    }

    /// Creates the objects that verify signatures and run the programs of checks.
    func makeCheckHelpers() async throws -> CheckHelpers {
        let files = checkFiles
        try await pools.programs.run { try files.prepare() }
        return CheckHelpers(
            verifier: ContentVerifier(workers: pools.proofs),
            inspector: CandidateInspector(programs, files) { [limiter, log, readers] logging, pipeline, command in
                // The output of a check may quote the content.
                guard readers.isPublic(pipeline) else { return }
                logging.logOutput(of: command, of: pipeline, limiter, log)
            })
    }

    /// Sets the hooks of these pipelines, so that they run after changes, and pending hooks run now.
    func assignHooks(of definitions: [PipelineDefinition]) async {
        guard let parts, !definitions.isEmpty else { return }
        // With a new index, the last successful runs of hooks are unknown, so the hooks run again for the current
        // generations.
        let all = definitions.map { definition in
            let notified = isHookStateLost ? nil : current(definition)?.identity
            return (pipeline: definition.name, hooks: definition.hooks, notified: notified)
        }
        let memories = await parts.store.assignHooks(all)
        for definition in definitions {
            // `current` is read again, because a run may have committed meanwhile.
            parts.hooks.configure(definition, memories[definition.name] ?? [:], current: current(definition))
        }
    }

    /// Removes the hooks of a pipeline that is not configured any more. If the pipeline is added again, its hooks are
    /// new.
    func forgetHooks(of name: String) async {
        guard pipelines[name]?.definition.hooks.isEmpty == false else { return }
        _ = await parts?.store.assignHooks([(pipeline: name, hooks: [], notified: nil)])
    }

    /// The current or withdrawn generation of a pipeline with hooks.
    private func current(_ definition: PipelineDefinition) -> CurrentGeneration? {
        definition.hooks.isEmpty ? nil : pipelines[definition.name]?.runner.status.kept
    }

    /// Sets the hooks of a pipeline if its configuration has changed them.
    func assignHooks(of definition: PipelineDefinition, before: PipelineDefinition?) async {
        if definition.hooks != before?.hooks ?? [] { await assignHooks(of: [definition]) }
    }
}

extension FreshetControl.PendingHook {
    init(_ pending: HookMachine.PendingRun) {
        self.init(
            hook: pending.hook.text, generation: Int64(clamping: pending.generation), running: pending.isRunning,
            attempts: Int64(pending.memory.attempts), since: pending.memory.failingSince?.microseconds,
            error: pending.memory.error,
            next: pending.next.map(WallClock.microseconds(at:)))
    }
}
