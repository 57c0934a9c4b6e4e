import FreshetVarlink

/// The method that examines the cache.
extension ControlDispatcher {
    /// The most findings in one reply: some tens of kilobytes.
    package static let findingsPerReply = 64

    func examine(_ call: VarlinkCall) async throws -> ControlMessage.Examined {
        guard call.acceptsMore else { throw VarlinkErrorReply.expectedMore }
        let repair = try call.parameters.decode(as: ControlMessage.Examine.self).repair ?? false
        var reply = ControlMessage.Examined()
        for step in try await services.cache.examinationSteps() {
            try Task.checkCancellation()
            reply.add(try await services.cache.examine(step, repair: repair))
            while reply.findings.count > Self.findingsPerReply {
                var part = ControlMessage.Examined()
                part.findings = Array(reply.findings.prefix(Self.findingsPerReply))
                reply.findings.removeFirst(Self.findingsPerReply)
                try await call.send(VarlinkParameters(encoding: part))
            }
        }
        return reply
    }
}
