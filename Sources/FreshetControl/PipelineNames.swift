import FreshetVarlink

/// Finds the pipelines that calls name.
struct PipelineNames: Sendable {
    let services: ControlServices

    /// These names, each once and sorted, or the names of all pipelines; throws if a name does not exist.
    func existing(_ names: [String]?) async throws(ControlError) -> [String] {
        guard let names else { return await services.pipelines.pipelineNames() }
        for name in names { try await requireExisting(name) }
        return Set(names).sorted()
    }

    /// Throws if there is no pipeline with this name.
    func requireExisting(_ name: String) async throws(ControlError) {
        guard !(await services.pipelines.hasPipeline(name)) else { return }
        let suggestion = NameSuggestion.closest(to: name, among: await services.pipelines.pipelineNames())
        throw .noSuchPipeline(name: name, suggestion: suggestion, file: await services.daemon.inactiveFile(name))
    }

    /// The selected pipelines; throws if a name is not the name of a pipeline.
    func selection(_ names: [String]?) async throws(ControlError) -> PipelineSelection {
        let selection: PipelineSelection
        do throws(PipelineSelection.TooManyPatterns) {
            selection = try PipelineSelection(names)
        } catch {
            throw .invalidParameter("names")
        }
        if let exact = selection.exact { _ = try await existing(exact.sorted()) }
        return selection
    }

    /// The names of the selected pipelines, each once and sorted.
    func fitting(_ names: [String]?, _ call: VarlinkCall) async throws(ControlError) -> [String] {
        let selection = try await selection(names)
        // Without a pattern, the other pipelines cost nothing.
        if let names, !names.contains(where: GlobPattern.isPattern) { return Set(names).sorted() }
        var fitting: [String] = []
        for (index, name) in await services.pipelines.pipelineNames().enumerated() {
            if index.isMultiple(of: ControlDispatcher.pipelinesPerReply) { await call.yield() }
            if selection.contains(name) { fitting.append(name) }
        }
        return fitting
    }
}

extension VarlinkCall {
    /// The user and process that call, in words.
    var caller: String { "user \(peer.user), process \(peer.processIdentifier)" }
}
