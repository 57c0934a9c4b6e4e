/// What is checked before a snapshot replaces the one before it.
extension CheckRules {
    /// Why the answer is not acceptable by its media type; nil: it is.
    func refusal(ofType mediaType: String?) -> RunFailure? {
        guard !types.isEmpty else { return nil }
        let wanted = types.joined(separator: " or ")
        guard let mediaType else {
            return RunFailure(.content, "the answer names no media type, \(wanted) is wanted; see check.type")
        }
        if types.contains(where: { $0.lowercased() == mediaType }) { return nil }
        return RunFailure(.content, "the answer is \(mediaType), \(wanted) is wanted; see check.type")
    }

    /// Why the answer is not acceptable by its media type or its size; nil: it is.
    func refusal(of content: FetchedContent) -> RunFailure? {
        refusal(ofType: content.mediaType) ?? refusal(ofAnswer: content.body.size)
    }

    /// Why the answer is too large; nil: it is not.
    func refusal(ofAnswer size: Int) -> RunFailure? {
        guard UInt64(size) > maxBytes else { return nil }
        return RunFailure(.content, "the answer has \(size) bytes, more than check.max-bytes allows (\(maxBytes))")
    }

    /// Why the snapshot has the wrong size; nil: it has not.
    func refusal(ofSnapshot size: Int) -> RunFailure? {
        let size = UInt64(size)
        if size < minBytes {
            let what = size == 0 ? "is empty" : "has \(size) bytes"
            return RunFailure(
                .content, "the snapshot \(what), less than check.min-bytes wants (\(minBytes))",
                refusal: .lasting)
        }
        if size > maxBytes {
            return RunFailure(
                .content, "the snapshot has \(size) bytes, more than check.max-bytes allows (\(maxBytes))",
                refusal: .lasting)
        }
        return nil
    }
}
