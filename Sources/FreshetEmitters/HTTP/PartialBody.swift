import FreshetModel
import FreshetPipelines

/// The state of a body whose connection broke: it allows to request the rest of the same body, and to verify that the
/// received data is that rest (RFC 9110, 13.1.5 and 14; RFC 9112, 8).
struct PartialBody: Hashable, Sendable {
    /// The fewest bytes for which the rest is requested. Fetching a shorter body again, after the backoff, is faster.
    static let minimum = 64 << 10

    /// The answer that the body belongs to: a 206 repeats its validator, and need not repeat other fields (RFC 9110,
    /// 15.3.7).
    let answer: HTTPAnswer
    /// The value of the `If-Range` field: a strong entity tag, or a date that is a strong validator.
    let validator: String
    /// The announced length of the whole body.
    let total: UInt64

    /// Fields of an answer that ``HTTPAnswer`` does not contain.
    struct Fields: Hashable, Sendable {
        var contentEncoding: String?
        var acceptRanges: String?
    }

    /// Returns nil if the rest of the answer's body cannot be requested with certainty: the answer has no strong
    /// validator, a content coding (the received part is decoded, but ranges count encoded bytes) or no length, or the
    /// origin does not serve ranges.
    init?(of answer: HTTPAnswer, _ fields: Fields, announced total: UInt64?) {
        guard answer.status == 200, let total, fields.contentEncoding == nil,
            fields.acceptRanges?.lowercased() != "none",
            let validator = Self.strongValidator(of: answer)
        else { return nil }
        self.answer = answer
        self.validator = validator
        self.total = total
    }

    /// A date, or an entity tag that was made of a date, is strong if the origin made the answer long enough after the
    /// date (``ResponseValidators``). With an entity tag, also with a weak one, a date is not allowed (RFC 9110,
    /// 13.1.5).
    private static func strongValidator(of answer: HTTPAnswer) -> String? {
        let usable = answer.validators
        guard answer.entityTag != nil else { return usable.lastModified }
        guard let tag = usable.entityTag else { return nil }
        return tag.hasPrefix("W/") ? nil : tag
    }

    /// The fields of a request for the bytes after the first `offset` bytes.
    func fields(from offset: Int) -> [String] { ["Range: bytes=\(offset)-", "If-Range: \(validator)"] }

    /// The fields of a 206.
    struct Rest: Hashable, Sendable {
        /// All lines of the field.
        var contentRanges: [String]
        var entityTag: String?
        var lastModified: String?
        var contentType: String?
        var contentEncoding: String?
        /// The length of its body; nil if it was not announced.
        var length: UInt64?
    }

    /// Why it is not certain that a 206 continues this body after `offset` bytes; nil if it is certain.
    ///
    /// The answer must contain the validator of `If-Range` (RFC 9110, 15.3.7): a server that ignores `If-Range` sends a
    /// part of its present content. A range whose total is `*` must end where the body ends: otherwise it is not
    /// certain that it is a part of a body of this length.
    func error(in rest: Rest, from offset: Int) -> String? {
        guard rest.contentEncoding == nil else { return "it is compressed, and the beginning was not" }
        if answer.entityTag != nil {
            guard let tag = rest.entityTag else { return "it has no entity tag, or several" }
            guard tag == validator else { return "it has another entity tag" }
        } else {
            guard rest.lastModified == validator else { return "it has another Last-Modified, or none" }
        }
        if let type = rest.contentType {
            guard !type.lowercased().hasPrefix("multipart/byteranges") else { return "it has several parts" }
            guard type == answer.contentType ?? type else { return "it has another Content-Type" }
        }
        guard let contentRange = rest.contentRanges.first else { return "it has no Content-Range field" }
        guard rest.contentRanges.count == 1 else { return "it has several Content-Range fields" }
        guard let range = ContentRange(contentRange) else { return "its Content-Range is invalid" }
        guard range.first == UInt64(offset), range.last < total, range.total ?? (range.last + 1) == total else {
            return "it is not the requested part"
        }
        if let length = rest.length, length == 0 || length - 1 != range.last - range.first {
            return "its length does not match its Content-Range"
        }
        return nil
    }
}

/// The `Content-Range` field of a single part (RFC 9110, 14.4): `bytes 100-199/200`.
struct ContentRange: Hashable, Sendable {
    var first: UInt64
    /// Inclusive; not less than `first`.
    var last: UInt64
    /// The length of the whole content; nil if it is `*`.
    var total: UInt64?

    /// Whether it is certain that the part is the whole content.
    var isWhole: Bool { first == 0 && total.map { $0 - 1 == last } == true }

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

    /// The number in a text that consists only of digits, without a sign.
    private static func number(_ text: Substring) -> UInt64? {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? UInt64(text) : nil
    }
}

extension PartialBody.Rest {
    init(_ head: ResponseHead, length: UInt64?) {
        self.init(
            contentRanges: head.values(of: "content-range"), entityTag: head.token("etag"),
            lastModified: head.token("last-modified"), contentType: head["content-type"],
            contentEncoding: head["content-encoding"], length: length)
    }
}
