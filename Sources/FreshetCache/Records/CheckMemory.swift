package import FreshetModel

/// Answers the questions of the usual conditional check from memory: which validators belong to the published copy,
/// and that the origin has confirmed it. Neither the index nor a worker thread takes part; the published file is
/// verified by one `lstat`.
///
/// Safe to call from any thread. Only a copy that was used since the start is in memory.
package struct CheckMemory: Sendable {
    let context: CacheContext

    /// The validators for a conditional request with this binding. Nil: they are not in memory, or the published file
    /// is not the committed one; ``LocalCache/validators(_:boundTo:)`` decides.
    package func validators(_ pipeline: String, boundTo binding: String) -> Validators? {
        guard let copy = context.knownEntry(pipeline)?.checked, copy.isBound(to: binding), isPublished(copy) else {
            return nil
        }
        return copy.validators
    }

    /// Records that the origin confirmed the content. The index gets the record with the next transaction, or by
    /// ``RecordStore/storeDeferred(at:)``.
    ///
    /// - Parameters:
    ///   - asked: the validators of the request.
    ///   - validators: the validators of the response; nil: it had none.
    ///   - expires: when the content stops being fresh, as the origin states; replaces the earlier value.
    /// - Returns: how many records wait then. Nil, and nothing is recorded, if the copy is not in memory, has changed,
    ///   or too many records wait: ``RecordStore/recordUnchanged(_:asked:validators:expires:at:)`` decides.
    package func recordUnchanged(
        _ pipeline: String, asked: BoundValidators, validators: BoundValidators?, expires: WallTime?, at now: WallTime
    ) -> Int? {
        guard let entry = context.knownEntry(pipeline), let copy = entry.checked,
            copy.validators == asked.validators, copy.isBound(to: asked.binding), isPublished(copy)
        else { return nil }
        let new = validators == asked ? nil : validators
        if let new, !new.isStorable { return nil }
        let check = ConfirmedCheck(
            pipeline: pipeline, digest: copy.digest, validators: new, at: now, expires: expires)
        var waiting: Int?
        _ = entry.replace(copy, with: new.map(copy.with) ?? copy) {
            waiting = context.index.deferred.append(.check(check))
            return waiting != nil
        }
        return waiting
    }

    private func isPublished(_ copy: CheckedCopy) -> Bool {
        guard copy.isOf(epoch: context.index.epoch) else { return false }
        return (try? context.fileSystem.status(context.layout.reader(copy.file)))??.identity == copy.identity
    }
}
