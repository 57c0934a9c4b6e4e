/// Checks of the media type and the size.
extension CheckRules {
    /// Why the answer's media type is rejected; nil: it is accepted.
    func rejection(ofType mediaType: String?) -> RunFailure? {
        guard !types.isEmpty else { return nil }
        let required = types.joined(separator: " or ")
        guard let mediaType else {
            return RunFailure(.content, "rejected by check.type: the answer has no media type, \(required) required")
        }
        if types.contains(where: { $0.lowercased() == mediaType }) { return nil }
        return RunFailure(.content, "rejected by check.type: the answer is \(mediaType), \(required) required")
    }

    /// Why the answer's media type or size is rejected; nil: both are accepted.
    func rejection(of content: FetchedContent) -> RunFailure? {
        rejection(ofType: content.mediaType) ?? rejection(ofAnswer: content.body.size)
    }

    /// Why the answer's size is rejected; nil: it is accepted.
    func rejection(ofAnswer size: Int) -> RunFailure? {
        guard UInt64(size) > maxBytes else { return nil }
        return RunFailure(
            .content, "rejected by check.max-bytes: the answer has \(size) bytes, at most \(maxBytes) allowed")
    }

    /// Why the snapshot's size is rejected; nil: it is accepted.
    func rejection(ofSnapshot size: Int) -> RunFailure? {
        let size = UInt64(size)
        if size < minBytes {
            let what = size == 0 ? "the content is empty" : "\(size) bytes"
            return RunFailure(
                .content, "rejected by check.min-bytes: \(what), at least \(minBytes) required",
                rejection: .lasting)
        }
        if size > maxBytes {
            return RunFailure(
                .content, "rejected by check.max-bytes: \(size) bytes, at most \(maxBytes) allowed",
                rejection: .lasting)
        }
        return nil
    }
}
