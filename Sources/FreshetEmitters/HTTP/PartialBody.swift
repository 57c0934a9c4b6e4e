import FreshetPipelines

/// What is known of a body whose connection broke: enough to ask for the rest of the same body, and to see that what
/// comes is the rest and nothing else (RFC 9110, 13.1.5 and 14; RFC 9112, 8).
struct PartialBody: Hashable, Sendable {
    /// Fewer bytes than this are quicker fetched again than asked for the rest of, and the back-off does that.
    static let minimum = 64 << 10

    /// The answer that the body belongs to: a 206 need not repeat its fields (RFC 9110, 15.3.7).
    let answer: HTTPAnswer
    /// The `If-Range` field's value: a strong entity tag, or a date that is as good as one.
    let validator: String
    /// The length of the whole body as it was announced.
    let total: UInt64

    /// What an answer says about itself besides what ``HTTPAnswer`` holds.
    struct Fields: Hashable, Sendable {
        var contentEncoding: String?
        var acceptRanges: String?
    }

    /// Returns nil if the rest of the answer's body cannot be asked for with certainty: it has no strong validator, was
    /// coded (what is at hand is decoded, and ranges count what is sent), had no length, or the origin serves no ranges.
    init?(of answer: HTTPAnswer, _ fields: Fields, announced total: UInt64?) {
        guard answer.status == 200, let total, fields.contentEncoding == nil,
            fields.acceptRanges?.lowercased() != "none",
            let validator = Self.strongValidator(of: answer)
        else { return nil }
        self.answer = answer
        self.validator = validator
        self.total = total
    }

    /// A date, or an entity tag that was made of it, is strong if the origin made the answer long enough after it
    /// (``ResponseValidators``). With an entity tag, also a weak one, a date is not allowed (RFC 9110, 13.1.5).
    private static func strongValidator(of answer: HTTPAnswer) -> String? {
        let usable = answer.validators(received: nil)
        guard answer.entityTag != nil else { return usable.lastModified }
        guard let tag = usable.entityTag else { return nil }
        return tag.hasPrefix("\"") && tag.hasSuffix("\"") && tag != "\"" ? tag : nil
    }

    /// The fields of a request for what follows the first `offset` bytes.
    func fields(from offset: Int) -> [String] { ["Range: bytes=\(offset)-", "If-Range: \(validator)"] }

    /// What is wrong with a 206 that was to continue after `offset` bytes; nil: it does.
    func fault(
        inContentRange contentRange: String?, entityTag: String?, contentEncoding: String?, from offset: Int
    ) -> String? {
        guard contentEncoding == nil else { return "it is compressed, and the beginning was not" }
        if let entityTag, answer.entityTag != nil, entityTag != answer.entityTag {
            return "it has another entity tag"
        }
        guard let contentRange else { return "it does not say which part it is" }
        guard let range = ContentRange(contentRange) else { return "its Content-Range makes no sense" }
        guard range.first == UInt64(offset), range.last < total, range.total ?? total == total else {
            return "it is another part than the one that was asked for"
        }
        return nil
    }
}

/// The `Content-Range` field of a single part (RFC 9110, 14.4): `bytes 100-199/200`.
struct ContentRange: Hashable, Sendable {
    var first: UInt64
    /// Inclusive; not less than `first`.
    var last: UInt64
    /// The length of the whole; nil: `*`.
    var total: UInt64?

    init?(_ field: String) {
        let words = field.split { $0 == " " || $0 == "\t" }
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let halves = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false).map(Self.number)
        guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last else { return nil }
        self.first = first
        self.last = last
        guard halves[1] != "*" else { return }
        guard let total = Self.number(halves[1]), last < total else { return nil }
        self.total = total
    }

    /// Digits alone: no sign.
    private static func number(_ text: Substring) -> UInt64? {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? UInt64(text) : nil
    }
}
