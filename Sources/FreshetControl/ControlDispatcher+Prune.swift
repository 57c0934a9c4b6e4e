import FreshetVarlink

/// The methods that list and remove files in the cache that belong to no configured pipeline.
extension ControlDispatcher {
    /// The most pipelines in one reply, and the most names in one call of `freshetctl`: some kilobytes.
    package static let unownedPerReply = 64

    func listUnowned(_ call: VarlinkCall) async throws -> ControlMessage.Unowned {
        guard call.acceptsMore else { throw VarlinkErrorReply.expectedMore }
        var pipelines = try await services.cache.unowned()[...]
        while pipelines.count > Self.unownedPerReply {
            let part = ControlMessage.Unowned(pipelines: Array(pipelines.prefix(Self.unownedPerReply)))
            try await call.send(VarlinkParameters(encoding: part))
            pipelines = pipelines.dropFirst(Self.unownedPerReply)
        }
        return ControlMessage.Unowned(pipelines: Array(pipelines))
    }

    func prune(_ call: VarlinkCall) async throws -> ControlMessage.Pruned {
        let names = try call.parameters.decode(as: ControlMessage.Prune.self).names
        return try await services.cache.prune(names, caller: Self.caller(of: call))
    }
}
