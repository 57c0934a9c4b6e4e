import CCurl
import FreshetPipelines

/// Storing long bodies.
extension HTTPClient {
    /// Awaits the end of a request. If its body is long and the request has a body store, the task that calls this
    /// writes the body to the store while it arrives.
    func follow(_ exchange: HTTPExchange) async -> Result<FetchResult, FetchError> {
        var kept: (any PendingBody)?
        while true {
            if case .failure = exchange.result { break }
            if let piece = exchange.body.spool.next() {
                // The spool can take another piece.
                resume(exchange)
                do throws(RunFailure) {
                    try await write(piece, of: exchange, to: &kept)
                } catch {
                    abandon(exchange, .failed(error))
                    // The request may have ended successfully meanwhile.
                    if case .success = exchange.result { exchange.result = .failure(.failed(error)) }
                }
            } else if exchange.result != nil {
                break
            } else {
                await withCheckedContinuation { exchange.wait($0) }
            }
        }
        // safe: the loop ends only with a result.
        let result = exchange.result ?? .failure(.cancelled)
        guard let kept else { return result }
        return await end(kept, of: exchange, result)
    }

    private func write(
        _ piece: BodySpool.Piece, of exchange: HTTPExchange, to kept: inout (any PendingBody)?
    ) async throws(RunFailure) {
        if piece.isFirst {
            await kept?.discard()
            kept = nil
            kept = try await exchange.fetch.bodyStore?.begin(expecting: exchange.body.expected)
        }
        try await kept?.append(piece.bytes)
    }

    private func end(
        _ kept: any PendingBody, of exchange: HTTPExchange, _ result: Result<FetchResult, FetchError>
    ) async -> Result<FetchResult, FetchError> {
        // The stored pieces may belong to an earlier, incomplete body: then the answer contains its whole body.
        guard exchange.body.spool.isHandedOn, case .success(.content(var content)) = result,
            case .bytes(let rest) = content.body
        else {
            await kept.discard()
            return result
        }
        do throws(RunFailure) {
            try await kept.append(rest)
        } catch {
            return .failure(.failed(error))
        }
        content.body = .kept(StoredBody(kept, size: exchange.body.spool.count))
        return .success(.content(content))
    }

    func resume(_ exchange: HTTPExchange) {
        guard exchange.body.unpause(), let pool = pools[exchange.pool] else { return }
        let code = pool.resume(exchange)
        guard code != CURLE_OK else { return }
        hopEnded(exchange, code)
        closeIfIdle(exchange.pool)
    }
}
