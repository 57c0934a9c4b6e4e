import FreshetModel
import FreshetVarlink

extension ControlDispatcher {
    /// The most bytes of content in one reply of `ReadGeneration`: 64 KiB as Base64.
    package static let contentPerReply = 49_152
}

/// The methods on generations.
struct GenerationMethods: Sendable {
    let services: ControlServices
    let pipelineNames: PipelineNames

    func history(_ call: VarlinkCall) async throws -> ControlMessage.PastGenerations {
        let request = try call.parameters.decode(as: ControlMessage.History.self)
        try await pipelineNames.requireExisting(request.name)
        if let limit = request.limit, limit < 1 { throw ControlError.invalidParameter("limit") }
        var past = try await services.generations.history(
            of: request.name, limit: request.limit.map(Int.init(clamping:)))
        if !(await services.pipelines.mayRead(request.name, call.peer)) {
            past.generations = past.generations.map { $0.withholdingContent() }
        }
        return past
    }

    func readGeneration(_ call: VarlinkCall) async throws -> VarlinkParameters {
        guard call.acceptsMore else { throw VarlinkErrorReply.expectedMore }
        let request = try call.parameters.decode(as: ControlMessage.Numbered.self)
        guard let number = request.number else { throw ControlError.invalidParameter("number") }
        try await pipelineNames.requireExisting(request.name)
        return try await send(
            try await services.generations.content(of: request.name, generation: number, for: call.peer), to: call)
    }

    func readCandidate(_ call: VarlinkCall) async throws -> VarlinkParameters {
        guard call.acceptsMore else { throw VarlinkErrorReply.expectedMore }
        let name = try call.parameters.string("name")
        try await pipelineNames.requireExisting(name)
        return try await send(try await services.generations.candidate(of: name, for: call.peer), to: call)
    }

    func accept(_ call: VarlinkCall) async throws -> ControlMessage.RolledBack {
        let request = try call.parameters.decode(as: ControlMessage.Candidate.self)
        try await pipelineNames.requireExisting(request.name)
        if let digest = request.digest, digest.isEmpty || !digest.utf8.allSatisfy(\.isHexadecimalDigit) {
            throw ControlError.invalidParameter("digest")
        }
        return try await services.generations.accept(request.name, request.digest, caller: call.caller)
    }

    /// Sends a content in pieces and returns the last piece as the final reply.
    private func send(_ content: any ControlContent, to call: VarlinkCall) async throws -> VarlinkParameters {
        var bytes = try await content.next(ControlDispatcher.contentPerReply)
        while true {
            let reply = try VarlinkParameters(encoding: ControlMessage.Content(data: Base64.text(of: bytes)))
            // The last reply ends the call: to know whether a piece is the last one, the next piece is read first.
            bytes = bytes.isEmpty ? [] : try await content.next(ControlDispatcher.contentPerReply)
            guard !bytes.isEmpty else { return reply }
            try await call.send(consume reply)
        }
    }

    func rollback(_ call: VarlinkCall) async throws -> ControlMessage.RolledBack {
        let request = try call.parameters.decode(as: ControlMessage.Numbered.self)
        try await pipelineNames.requireExisting(request.name)
        return try await services.generations.rollBack(request.name, to: request.number, caller: call.caller)
    }

    func pin(_ call: VarlinkCall) async throws -> ControlMessage.Pinned {
        let name = try call.parameters.string("name")
        try await pipelineNames.requireExisting(name)
        return try await services.generations.pin(name, caller: call.caller)
    }

    func unpin(_ call: VarlinkCall) async throws -> ControlMessage.Pinned {
        let name = try call.parameters.string("name")
        try await pipelineNames.requireExisting(name)
        return try await services.generations.unpin(name, caller: call.caller)
    }
}

extension UInt8 {
    fileprivate var isHexadecimalDigit: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}
