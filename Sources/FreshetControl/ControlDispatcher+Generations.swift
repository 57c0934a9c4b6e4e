import FreshetVarlink

/// The methods on generations.
extension ControlDispatcher {
    /// Bytes of content in one reply of `ReadGeneration`: 64 KiB of text.
    package static let contentPerReply = 49_152

    func history(_ call: VarlinkCall) async throws -> ControlMessage.PastGenerations {
        let request = try call.parameters.decode(as: ControlMessage.History.self)
        _ = try await existing([request.name])
        if let limit = request.limit, limit < 1 { throw ControlError.invalidParameter("limit") }
        return ControlMessage.PastGenerations(
            generations: try await service.history(of: request.name, limit: request.limit.map(Int.init(clamping:))))
    }

    func readGeneration(_ call: VarlinkCall) async throws -> ControlMessage.Content {
        guard call.wantsMore else { throw VarlinkErrorReply.expectedMore }
        let request = try call.parameters.decode(as: ControlMessage.Numbered.self)
        guard let number = request.number else { throw ControlError.invalidParameter("number") }
        _ = try await existing([request.name])
        let content = try await service.content(of: request.name, generation: number, for: call.peer)
        var bytes = try await content.next(Self.contentPerReply)
        while true {
            // The last reply is the one that ends the call, so it takes knowing that nothing follows.
            let following = bytes.isEmpty ? [] : try await content.next(Self.contentPerReply)
            let reply = ControlMessage.Content(data: Base64.text(of: bytes))
            guard !following.isEmpty else { return reply }
            try await call.send(VarlinkParameters(encoding: reply))
            bytes = following
        }
    }

    func rollback(_ call: VarlinkCall) async throws -> ControlMessage.RolledBack {
        let request = try call.parameters.decode(as: ControlMessage.Numbered.self)
        _ = try await existing([request.name])
        return try await service.rollBack(request.name, to: request.number, asker: Self.asker(of: call))
    }

    func pin(_ call: VarlinkCall) async throws -> ControlMessage.Pinned {
        let name = try call.parameters.decode(as: ControlMessage.Name.self).name
        _ = try await existing([name])
        return try await service.pin(name, asker: Self.asker(of: call))
    }

    func unpin(_ call: VarlinkCall) async throws -> ControlMessage.Pinned {
        let name = try call.parameters.decode(as: ControlMessage.Name.self).name
        _ = try await existing([name])
        return try await service.unpin(name, asker: Self.asker(of: call))
    }
}
