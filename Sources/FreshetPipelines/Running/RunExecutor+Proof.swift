/// What lies beside an answer.
extension RunExecutor {
    /// Why an answer is not what its publisher made; nil: it is, as far as that is to be looked at.
    func doubt(about body: FetchedBody) async throws(FetchError) -> RunFailure? {
        guard definition.check.hasProofs, case .http(let source) = try filled(definition.source) else { return nil }
        guard let prover = world.helpers.prover else { throw .failed(.noHelper) }
        let verdict = try await ContentVerification(
            rules: definition.check, source: source, prover: prover,
            request: { (beside) throws(FetchError) in
                guard case .http(let filled) = try self.filled(.http(beside)) else { return beside }
                return source.beside(filled.url, host: filled.host, resolve: world.fetcher.resolve)
            }, ask: fetchBeside
        ).verdict(on: body)
        if let comment = verdict.comment { progress.noteSigned(comment) }
        return verdict.refusal
    }

    /// Asks for something small that is no part of the content. It is not asked for conditionally: it is of interest only
    /// when the content is new.
    private func fetchBeside(_ source: HTTPSource, maxBytes: UInt64) async throws(FetchError) -> [UInt8] {
        if Task.isCancelled { throw .cancelled }
        // Counted, and not asked about: without it the request that was allowed would have been for nothing.
        var request = FetchRequest(
            source: .http(source), maxBytes: maxBytes, epoch: epoch, asked: { [progress] in progress.countRequest() })
        // A list or a signature that was cut proves nothing.
        request.isProven = true
        let result = try await world.fetcher.fetch(request)
        guard case .content(let content) = result else { throw .failed(.unaskedNotModified) }
        return try content.bytes
    }
}

extension RunFailure {
    /// A check is configured that whoever runs the pipeline cannot make.
    static let noHelper = RunFailure(.local, "a check that is configured cannot be made here")
}
