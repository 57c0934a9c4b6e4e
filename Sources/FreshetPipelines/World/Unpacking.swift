/// Unpacks answers.
package protocol Unpacking: Sendable {
    /// Unpacks a body to one file. The body stays as it is.
    ///
    /// Cancelling the task ends the work.
    ///
    /// - Parameters:
    ///   - maxBytes: the most bytes of the result.
    ///   - bodyStore: the store for a long result; nil: the result must be in memory.
    /// - Throws: a failure of the kind `content` if the body is not acceptable; of another kind if it could not be
    ///   unpacked. A part of the content is never returned.
    func unpack(
        _ body: FetchedBody, by rule: UnpackRule, maxBytes: UInt64, bodyStore: (any BodyStoring)?
    ) async throws(FetchError) -> FetchedBody
}

extension EngineDependencies {
    /// An answer with its unpacked body. The received body is discarded, also after a failure.
    ///
    /// - Parameter rule: nil: the answer is not unpacked.
    func unpacked(
        _ content: FetchedContent, by rule: UnpackRule?, maxBytes: UInt64, bodyStore: (any BodyStoring)?
    ) async throws(FetchError) -> FetchedContent {
        guard let rule else { return content }
        var unpacked = content
        do throws(FetchError) {
            guard let unpacker else { throw .failed(.cannotCheck("source.unpack")) }
            unpacked.body = try await unpacker.unpack(
                content.body, by: rule, maxBytes: maxBytes, bodyStore: bodyStore)
        } catch {
            await content.body.discard()
            throw error.of("unpack: \(rule)")
        }
        await content.body.discard()
        return unpacked
    }
}
