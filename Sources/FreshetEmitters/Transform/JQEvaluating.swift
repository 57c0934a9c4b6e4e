package import FreshetHelper
package import FreshetPipelines

/// Implements the engine's ``Transforming`` with requests to jq helpers.
package protocol JQEvaluating: Transforming {
    /// The most bytes of output of a program.
    var maxOutput: UInt64 { get }
    /// Sends a request to a helper and returns its reply.
    ///
    /// - Throws: why there is no reply. A reply itself may be a failure, too.
    func exchange(_ request: HelperRequest) async throws(FetchError) -> HelperReply
}

extension JQEvaluating {
    package func transform(
        _ input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [UInt8] {
        try await checkedReply(request(.outputs, program, over: input, format, variables)).bytes
    }

    package func values(
        of input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [[UInt8]] {
        let reply = try await checkedReply(request(.values, program, over: input, format, variables))
        guard let values = reply.values else {
            throw .failed(RunFailure(.local, "the jq helper sent an invalid reply"))
        }
        return values
    }

    package func holds(
        _ predicate: String, for input: [UInt8], in format: ContentFormat
    ) async throws(FetchError) -> Bool {
        try await checkedReply(request(.verdict, predicate, over: input, format)).verdict
    }

    package func render(_ input: [UInt8], by template: TemplateDefinition) async throws(FetchError) -> [UInt8] {
        // The helper only parses a template without input.
        guard !input.isEmpty else { throw .failed(TransformFailure.noInput(of: template)) }
        let reply = try await exchange(
            HelperRequest(
                .template, program: template.text, variables: Array(template.escape.rawValue.utf8), input: input,
                maxOutput: maxOutput))
        if let failure = TransformFailure.of(reply, rendering: template, maxOutput) { throw .failed(failure) }
        return reply.bytes
    }

    /// The error in a template; nil if there is none.
    ///
    /// - Throws: why the helper could not parse the template.
    package func error(in template: TemplateDefinition) async throws(FetchError) -> TemplateMessage? {
        let reply = try await exchange(
            HelperRequest(
                .template, program: template.text, variables: Array(template.escape.rawValue.utf8), input: [],
                maxOutput: 0))
        return reply.status == .invalidProgram ? TemplateMessage(of: reply) : nil
    }

    package func items(of content: [UInt8], as form: BinaryForm) async throws(FetchError) -> Int? {
        let reply = try await exchange(
            HelperRequest(.form, program: form.rawValue, input: content, maxOutput: maxOutput))
        guard reply.status == .done else {
            throw .failed(RunFailure(.content, "it is not \(form.name): \(TransformFailure.message(of: reply))"))
        }
        return Int(String(decoding: reply.bytes, as: UTF8.self))
    }

    /// jq's message about an error in a program; nil if the program compiles.
    ///
    /// - Parameter variables: the names of the variables that the program may use.
    /// - Throws: why the helper could not compile the program.
    package func error(in program: String, variables: [String] = []) async throws(FetchError) -> String? {
        let variables = JQVariable.object(variables.map { JQVariable($0, json: Array("null".utf8)) })
        // Without input a program is compiled and does not run.
        let reply = try await exchange(
            HelperRequest(.verdict, program: program, variables: variables, input: [], maxOutput: 0))
        return reply.status == .invalidProgram ? TransformFailure.message(of: reply) : nil
    }

    private func request(
        _ purpose: HelperRequest.Purpose, _ program: String, over input: [UInt8], _ format: ContentFormat,
        _ variables: [JQVariable] = []
    ) -> HelperRequest {
        HelperRequest(
            purpose, program: program, variables: JQVariable.object(variables), input: input,
            isText: format == .text, maxOutput: maxOutput)
    }

    private func checkedReply(_ request: HelperRequest) async throws(FetchError) -> HelperReply {
        let reply = try await exchange(request)
        if let failure = TransformFailure.of(reply, to: request) { throw .failed(failure) }
        return reply
    }
}

/// Sends the requests of one pipeline to the helpers.
struct JQClient: JQEvaluating {
    let transformer: JQTransformer
    let pipeline: UInt64
    /// The memory for the requests; nil if each request reserves its own memory.
    var memory: MemoryReservation?

    var maxOutput: UInt64 { transformer.maxOutput }

    func exchange(_ request: HelperRequest) async throws(FetchError) -> HelperReply {
        try await transformer.exchange(request, of: pipeline, using: memory)
    }

    func using(_ memory: MemoryReservation) -> any Transforming {
        JQClient(transformer: transformer, pipeline: pipeline, memory: memory)
    }
}
