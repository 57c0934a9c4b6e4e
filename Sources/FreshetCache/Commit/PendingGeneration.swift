package import FreshetModel

/// A candidate that is being written. It ends with `commit`, `reject` or `discard`; if the object is released before,
/// it discards the candidate, and the next start removes the candidates of a killed process.
///
/// All methods block. They may be called from any thread; concurrent calls run one after another.
package final class PendingGeneration: Sendable {
    private let candidate: CandidateFile
    private let committer: Committer
    private let rejections: RejectedStore

    init(_ candidate: CandidateFile, _ committer: Committer, _ rejections: RejectedStore) {
        self.candidate = candidate
        self.committer = committer
        self.rejections = rejections
    }

    /// Appends bytes and updates the digest. After an error the candidate is discarded.
    ///
    /// - Throws: ``CacheError/tooLarge(maximum:)`` as soon as the limit is exceeded.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) { try candidate.write(bytes) }

    /// Appends bytes and updates the digest. After an error the candidate is discarded.
    package func write(_ bytes: [UInt8]) throws(CacheError) { try candidate.write(bytes) }

    /// The bytes written so far; nil after the end.
    package var size: Int64? { candidate.size }

    /// The digest of the bytes written so far; nil after the end.
    package func digest() throws(CacheError) -> ContentDigest? { try candidate.digest() }

    /// The path of the candidate. Other code may read it until the candidate ends.
    package var file: String { candidate.path }

    /// Reads the written content, in pieces.
    package func read(_ piece: (UnsafeRawBufferPointer) -> Void) throws(CacheError) { try candidate.read(piece) }

    /// Whether the file has exactly the written content: a program that knows its name could have written to it too.
    package func isIntact() throws(CacheError) -> Bool { try candidate.isIntact() }

    /// Ends the candidate and removes its file. A second call does nothing.
    package func discard() { candidate.discard() }

    /// Makes the candidate the current generation, or finds that its content is current already.
    ///
    /// In any case the candidate has ended afterwards, and readers see a complete generation: if this throws, the
    /// previous one or (if the failure came after the rename) the new one; then the index agrees.
    ///
    /// - Parameters:
    ///   - validators: the validators of the pages that make up the content.
    ///   - truncated: the source had more content than was requested.
    ///   - isCheck: whether all of the source was requested; otherwise the time and the result of the last check stay.
    ///   - run: the number of the run.
    ///   - now: the time of the check.
    ///   - expires: when the content stops being fresh, as its origin states; nil: not known.
    ///   - contentExpires: the expiry time that the content itself states; nil: it states none.
    ///   - values: small values that the pipeline keeps from now on, as ``RecordStore/setState(_:key:to:isDurable:)``
    ///     stores them; a value beyond the limits is left out.
    package func commit(
        validators: [BoundValidators] = [], truncated: Bool = false, isCheck: Bool = true, run: Int64? = nil,
        at now: WallTime, expires: WallTime? = nil, contentExpires: WallTime? = nil, values: [String: [UInt8]] = [:]
    ) throws(CacheError) -> CommitOutcome {
        let check = Committer.Check(validators: validators, run: run, at: now, expires: expires, values: values)
        return try candidate.finish { (content) throws(CacheError) in
            var content = content
            content.truncated = truncated
            content.contentExpires = contentExpires
            content.isCheck = isCheck
            return try committer.commit(content, to: candidate.destination, check)
        }
    }

    /// Keeps the candidate as rejected content, in the place of the pipeline's previous rejected content. This ends the
    /// candidate. Content that a user accepted before is committed instead.
    ///
    /// - Parameters:
    ///   - reason: why it was rejected, as text for people.
    ///   - others: see ``commit(validators:truncated:isCheck:run:at:expires:contentExpires:values:)``.
    package func reject(
        because reason: String, validators: [BoundValidators] = [], truncated: Bool = false, at now: WallTime,
        expires: WallTime? = nil
    ) throws(CacheError) -> RejectionOutcome {
        let check = Committer.Check(validators: validators, run: nil, at: now, expires: expires)
        return try candidate.finish { (content) throws(CacheError) in
            var content = content
            content.truncated = truncated
            return try rejections.reject(content, for: candidate.destination, because: reason, check)
        }
    }
}
