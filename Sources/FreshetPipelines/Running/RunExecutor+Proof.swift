/// Verification by files beside an answer.
extension RunExecutor {
    /// Why the verification rejects an answer; nil: it passed, or none is configured.
    func proofRejection(about body: FetchedBody) async throws(FetchError) -> RunFailure? {
        guard definition.check.hasProofs, case .http(let source) = try filled(definition.source) else { return nil }
        guard let verifier = world.helpers.verifier else {
            throw .failed(.cannotCheck("check.digest or check.signature"))
        }
        let isConfigured = definition.source.hasConfiguredURL && definition.check.haveConfiguredURLs
        let outcome = try await ContentVerification(
            rules: definition.check, source: source, verifier: verifier,
            request: { (beside) throws(FetchError) in
                guard case .http(let filled) = try self.filled(.http(beside)) else { return beside }
                return source.beside(filled.url, host: filled.host, resolve: world.fetcher.resolve)
            },
            fetch: { (source, maxBytes) throws(FetchError) in
                try await fetchBeside(source, maxBytes: maxBytes, isConfigured: isConfigured)
            }
        ).outcome(on: body)
        if let comment = outcome.comment { progress.recordSigned(comment) }
        var rejection = outcome.rejection
        rejection?.isMismatch = true
        return rejection
    }

    /// Fetches a small file that is not part of the content. The request is unconditional, since the file matters only
    /// if the content is new.
    ///
    /// - Parameter isConfigured: whether its URL stands in the configuration, or follows from one that does.
    private func fetchBeside(
        _ source: HTTPSource, maxBytes: UInt64, isConfigured: Bool
    ) async throws(FetchError) -> [UInt8] {
        if Task.isCancelled { throw .cancelled }
        // The request is counted but does not need the budget's permission: without it the content's request would be
        // useless.
        var request = FetchRequest(
            source: .http(source), maxBytes: maxBytes, epoch: epoch, asked: { [progress] in progress.countRequest() })
        // A truncated list or signature proves nothing.
        request.isProven = true
        request.isBeside = true
        request.isConfiguredURL = isConfigured
        do throws(FetchError) {
            let result = try await world.fetcher.fetch(request)
            guard case .content(let content) = result else { throw .failed(.unexpectedNotModified) }
            return try content.bytes
        } catch {
            // Another mirror may have a file that can be used, such as one that is not too long.
            guard case .failed(var failure) = error, failure.kind == .content else { throw error }
            failure.isMismatch = true
            throw .failed(failure)
        }
    }
}

extension RunFailure {
    /// This program was made without the means for a configured check, so its content cannot be accepted.
    static func cannotCheck(_ key: String) -> RunFailure {
        RunFailure(.local, "\(key) cannot be evaluated by this program; run the pipeline with freshetd")
    }
}
