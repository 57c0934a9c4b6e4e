import FreshetVarlink

extension ControlDispatcher {
    /// The most findings in one reply: some tens of kilobytes.
    package static let findingsPerReply = 64
    /// The most pipelines in one reply, and the most names in one call of `freshetctl`: some kilobytes.
    package static let unownedPerReply = 64
}

/// The methods on the cache as a whole: its examination, and files that belong to no configured pipeline.
struct CacheMethods: Sendable {
    let services: ControlServices

    func examine(_ call: VarlinkCall) async throws -> ControlMessage.Examined {
        guard call.acceptsMore else { throw VarlinkErrorReply.expectedMore }
        let repair = try call.parameters.decode(as: ControlMessage.Examine.self).repair ?? false
        var reply = ControlMessage.Examined()
        for step in try await services.cache.examinationSteps() {
            try Task.checkCancellation()
            reply.add(try await services.cache.examine(step, repair: repair))
            while reply.findings.count > ControlDispatcher.findingsPerReply {
                var part = ControlMessage.Examined()
                part.findings = Array(reply.findings.prefix(ControlDispatcher.findingsPerReply))
                reply.findings.removeFirst(ControlDispatcher.findingsPerReply)
                try await call.send(VarlinkParameters(encoding: part))
            }
        }
        return reply
    }

    func listUnowned(_ call: VarlinkCall) async throws -> ControlMessage.Unowned {
        guard call.acceptsMore else { throw VarlinkErrorReply.expectedMore }
        var pipelines = try await services.cache.unowned()[...]
        while pipelines.count > ControlDispatcher.unownedPerReply {
            let part = ControlMessage.Unowned(pipelines: Array(pipelines.prefix(ControlDispatcher.unownedPerReply)))
            try await call.send(VarlinkParameters(encoding: part))
            pipelines = pipelines.dropFirst(ControlDispatcher.unownedPerReply)
        }
        return ControlMessage.Unowned(pipelines: Array(pipelines))
    }

    func prune(_ call: VarlinkCall) async throws -> ControlMessage.Pruned {
        let names = try call.parameters.decode(as: ControlMessage.Prune.self).names
        return try await services.cache.prune(names, caller: call.caller)
    }
}
