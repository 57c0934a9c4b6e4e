package import FreshetJQ
package import FreshetPipelines

/// Asks jq helpers what the engine wants to know.
package protocol JQEvaluating: Transforming {
    /// The most bytes that a program may put out.
    var maxOutput: UInt64 { get }
    /// Has a helper work on a request.
    ///
    /// - Throws: why there is no reply. A reply may be a failure, too.
    func exchange(_ request: JQRequest) async throws(FetchError) -> JQReply
}

extension JQEvaluating {
    package func transform(
        _ input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [UInt8] {
        try await ask(request(.outputs, program, over: input, format, variables)).bytes
    }

    package func values(
        of input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [[UInt8]] {
        guard let values = try await ask(request(.values, program, over: input, format, variables)).values else {
            throw .failed(RunFailure(.local, "the jq helper's answer cannot be read"))
        }
        return values
    }

    package func holds(
        _ predicate: String, for input: [UInt8], in format: ContentFormat
    ) async throws(FetchError) -> Bool {
        try await ask(request(.verdict, predicate, over: input, format)).verdict
    }

    package func items(of content: [UInt8], as form: BinaryForm) async throws(FetchError) -> Int? {
        let reply = try await exchange(
            JQRequest(.form, program: form.rawValue, input: content, maxOutput: maxOutput))
        guard reply.status == .done else {
            throw .failed(RunFailure(.content, "it is no \(form.name): \(TransformFailure.words(of: reply))"))
        }
        return Int(String(decoding: reply.bytes, as: UTF8.self))
    }

    /// What is wrong with a program, in jq's words; nil if it compiles.
    ///
    /// - Parameter variables: the names of those that it may use.
    /// - Throws: what kept the helper from looking at it.
    package func fault(in program: String, variables: [String] = []) async throws(FetchError) -> String? {
        let variables = JQVariable.object(variables.map { JQVariable($0, json: Array("null".utf8)) })
        // Without input a program is compiled and never runs.
        let reply = try await exchange(
            JQRequest(.verdict, program: program, variables: variables, input: [], maxOutput: 0))
        return reply.status == .invalidProgram ? TransformFailure.words(of: reply) : nil
    }

    private func request(
        _ purpose: JQRequest.Purpose, _ program: String, over input: [UInt8], _ format: ContentFormat,
        _ variables: [JQVariable] = []
    ) -> JQRequest {
        JQRequest(
            purpose, program: program, variables: JQVariable.object(variables), input: input,
            isText: format == .text, maxOutput: maxOutput)
    }

    private func ask(_ request: JQRequest) async throws(FetchError) -> JQReply {
        let reply = try await exchange(request)
        if let failure = TransformFailure.of(reply, to: request) { throw .failed(failure) }
        return reply
    }
}

/// The requests of one pipeline: its share of the helpers.
struct JQClient: JQEvaluating {
    let transformer: JQTransformer
    let pipeline: UInt64
    /// Nil: each request reserves what it needs.
    var memory: MemoryReservation?

    var maxOutput: UInt64 { transformer.maxOutput }

    func exchange(_ request: JQRequest) async throws(FetchError) -> JQReply {
        try await transformer.exchange(request, of: pipeline, using: memory)
    }

    func using(_ memory: MemoryReservation) -> any Transforming {
        JQClient(transformer: transformer, pipeline: pipeline, memory: memory)
    }
}
