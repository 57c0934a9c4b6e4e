import FreshetCache
import FreshetConfiguration
import FreshetEmitters
import FreshetEventLoop
import FreshetHelper
import FreshetPipelines
import FreshetSystemd

/// Reads the configuration and finds its errors, on worker threads.
struct ConfigurationReader: Sendable {
    private let options: DaemonOptions
    /// Uses the search path from the start of the daemon, also if directories are added or removed later.
    private let loader: ConfigurationLoader
    private let loop: EventLoop
    private let pools: ThreadPools

    init(_ context: DaemonContext) {
        options = context.options
        loader = ConfigurationLocation.loader(options)
        loop = context.loop
        pools = context.pools
    }

    /// Reads the files.
    func load() async -> Configuration {
        let load = await begin()
        return await read(load, beside: { _ in }) { $0 }.0
    }

    /// Finds the files, and reads those of the daemon.
    func begin() async -> ConfigurationLoad {
        let loader = loader
        return await pools.configuration.run("configuration") { ConfigurationLoad(with: loader) }
    }

    /// The configuration at the start.
    struct AtStart: Sendable {
        /// All files together.
        let loaded: Configuration
        /// The part that runs, with the errors of the service's environment.
        let configuration: Configuration
        let environment: HostEnvironment
        /// The values that must be redacted.
        let hidden: Set<String>
    }

    /// Reads the files of the pipelines, and what they need of the service's environment, while other work is done.
    ///
    /// - Parameter other: gets threads that help with this work when no file is left for them.
    func finish<Other: Sendable>(
        _ load: ConfigurationLoad, beside other: @Sendable (StartHelpers) async -> Other
    ) async -> (AtStart, Other) {
        await read(load, beside: other) { [self] loaded in
            let (configuration, environment) = checkHostEnvironment(of: selected(loaded))
            // A fleet's client needs it before the daemon is ready; another thread loads it meanwhile. For pipelines,
            // see `Daemon.begin`.
            if configuration.daemon.fleet != nil {
                pools.helpers.perform("libcurl") { CurlLibrary.load() }
            }
            return AtStart(
                loaded: loaded, configuration: configuration, environment: environment,
                hidden: environment.hidden(with: configuration))
        }
    }

    /// Reads the files of the pipelines: many of them on two threads. The second begins when other work has ended,
    /// which another thread does meanwhile. The thread that reads the last file continues with the result.
    private func read<Result: Sendable, Other: Sendable>(
        _ load: ConfigurationLoad, beside other: @Sendable (StartHelpers) async -> Other,
        then: @escaping @Sendable (Configuration) -> Result
    ) async -> (Result, Other) {
        let (pool, reading) = (pools.configuration, ConcurrentReading(load))
        let work: @Sendable () -> Result? = { reading.read() ? then(reading.configuration()) : nil }
        async let first = pool.run("configuration", work)
        let helper = StartHelper(pool, isFree: { reading.isClaimed })
        let otherResult = await other(StartHelpers { helper.perform($0) })
        var second: Result?
        if load.count >= Self.worthTwoThreads, !reading.isClaimed { second = await pool.run("configuration", work) }
        if let result = await first ?? second { return (result, otherResult) }
        // safe: one of the threads has got true.
        return (await pool.run("configuration") { then(reading.configuration()) }, otherResult)
    }

    /// As many pipelines take longer to read than the second thread costs.
    private static let worthTwoThreads = 32

    /// The file of a pipeline, which need not be in the active configuration; nil: there is no such file.
    func file(ofPipeline name: String) async -> String? {
        let loader = loader
        return await pools.configuration.run("configuration") { loader.file(ofPipeline: name) }
    }

    /// The part of a configuration that `--once` runs; without names, the whole configuration.
    func selected(_ configuration: Configuration) -> Configuration {
        guard !options.onceNames.isEmpty else { return configuration }
        var selected = configuration
        selected.pipelines.removeAll { !options.onceNames.contains($0.name) }
        selected.invalid = selected.invalid.filter { options.onceNames.contains($0.key) }
        return selected
    }

    /// Compiles the jq programs and parses the templates that are not active yet, and adds their errors. It uses its
    /// own helper, because those of pipelines may be busy. At the start, programs are not compiled, because that would
    /// delay READY by some milliseconds for each program; then a run reports the error.
    ///
    /// - Parameter active: the active configuration.
    func rejectingProgramErrors(of new: Configuration, active: Configuration) async -> Configuration {
        loop.nameJob("reload: programs")
        let knownTemplates = Set(active.pipelines.compactMap(\.template))
        let active = Set(active.pipelines.flatMap(\.programs))
        let transformer = JQTransformer(loop, workers: pools.helpers)
        var compileErrors: [ProgramText: String?] = [:]
        var errors: [ProgramError] = []
        for definition in new.pipelines {
            for program in Set(definition.programs).subtracting(active).sorted(by: { $0.text < $1.text }) {
                var compileError: String?
                if let known = compileErrors[program] {
                    compileError = known
                } else {
                    do throws(FetchError) {
                        compileError = try await transformer.error(in: program.text, variables: program.variables)
                    } catch {
                        // A program that ends the helper is an error; a helper that cannot be started is not.
                        if case .failed(let failure) = error, failure.kind == .content {
                            compileError = failure.message
                        }
                    }
                    compileErrors[program] = .some(compileError)
                }
                guard let compileError else { continue }
                errors.append(ProgramError(pipeline: definition.name, program: program.text, message: compileError))
            }
        }
        let templateErrors = await self.templateErrors(of: new, knownTemplates, transformer)
        guard !errors.isEmpty || !templateErrors.isEmpty else { return new }
        let loader = loader
        return await pools.configuration.run("configuration") { [errors] in
            loader.addingTemplateErrors(templateErrors, in: loader.addingProgramErrors(errors, in: new))
        }
    }

    /// The errors of templates that are not active yet. A helper that cannot be started is not an error of a template;
    /// ``checkingHostEnvironment(of:)`` reports it.
    private func templateErrors(
        of new: Configuration, _ active: Set<TemplateDefinition>, _ transformer: JQTransformer
    ) async -> [TemplateProblem] {
        var errors: [TemplateProblem] = []
        for definition in new.pipelines {
            guard let template = definition.template, !active.contains(template) else { continue }
            do throws(FetchError) {
                guard let error = try await transformer.error(in: template) else { continue }
                errors.append(TemplateProblem(pipeline: definition.name, template, error))
            } catch {
                guard case .failed(let failure) = error, failure.kind == .content else { continue }
                errors.append(
                    TemplateProblem(pipeline: definition.name, file: template.file, message: failure.message))
            }
        }
        return errors
    }

    /// Reads the credentials of pipelines and looks up their groups, on a worker thread. A pipeline that lacks one is
    /// invalid.
    func checkingHostEnvironment(of configuration: Configuration) async -> (Configuration, HostEnvironment) {
        await pools.configuration.run("configuration") { [self] in checkHostEnvironment(of: configuration) }
    }

    /// The same. Blocks.
    private func checkHostEnvironment(of configuration: Configuration) -> (Configuration, HostEnvironment) {
        let hostEnvironment = HostEnvironment(
            of: configuration, Credentials(environment: options.environment), options.trust)
        var checked = configuration
        if !hostEnvironment.warnings.isEmpty {
            checked = loader.adding(hostEnvironment.warnings, as: .warning, in: checked)
        }
        if !hostEnvironment.errors.isEmpty {
            checked = loader.adding(hostEnvironment.errors, as: .error, in: checked)
        }
        return (checked, hostEnvironment)
    }
}
