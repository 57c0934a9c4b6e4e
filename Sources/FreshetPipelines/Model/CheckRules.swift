/// What a snapshot must satisfy before it replaces the one before it. A candidate that fails is refused, and the copy
/// stays.
package struct CheckRules: Hashable, Sendable {
    /// A jq program whose last output must be neither `false` nor `null`.
    package var jq: String?
    /// The fewest bytes; 1 unless configured: an empty answer is never a good copy.
    package var minBytes: UInt64
    /// The most bytes, of the answer and of the snapshot.
    package var maxBytes: UInt64
    /// Media types of which the answer's must be one, such as `application/json`; empty: any.
    package var types: [String]
    /// What the copy has to be as a whole; nil: anything.
    package var form: ContentForm?
    /// A jq program for the list, or the object, whose members are the copy's items; nil: the copy itself, if it is a list,
    /// and the lines of a text that are not empty.
    package var items: String?
    /// The fewest items; nil: they are not counted.
    package var minItems: Int?
    /// The largest share of its items, in percent, that the copy may lose at once; of its bytes, if nothing says what its
    /// items are (``countsItems``). Nil: all of them.
    package var shrink: Int?
    /// A jq program for the time until when the data is valid: one that has passed is refused.
    package var validUntil: String?
    /// A jq program for the time when the data was made.
    package var madeAt: String?
    /// How long ago that may have been; nil: any time, as long as it is not to come.
    package var madeWithin: Duration?
    /// The list of sums that has that of the answer; nil: none. For one request alone, as the next.
    package var sha256: ChecksumRule?
    /// The signature of the answer; nil: none.
    package var minisign: SignatureRule?
    /// The program that has to accept the copy; nil: none.
    package var exec: InspectionRule?

    /// The limit on size where none is configured: 64 MiB.
    package static let defaultMaxBytes: UInt64 = 64 << 20
    /// How far ahead of this machine's clock the origin's may be: a copy that was made by then is not of the future.
    package static let clockTolerance: Duration = .seconds(300)

    package init(
        jq: String? = nil, minBytes: UInt64 = 1, maxBytes: UInt64 = CheckRules.defaultMaxBytes, types: [String] = []
    ) {
        self.jq = jq
        self.minBytes = minBytes
        self.maxBytes = maxBytes
        self.types = types
    }

    /// Whether the content may state when it expires.
    package var findsExpiry: Bool { validUntil != nil || (madeAt != nil && madeWithin != nil) }

    /// Its jq programs.
    package var programs: [String] { [jq, items, validUntil, madeAt].compactMap(\.self) }

    /// What is configured of that which bindings did not always know, a line each: a pipeline without any of it has the
    /// binding that it always had.
    var laterLines: [String] {
        [
            form.map { "form:\($0)" }, items.map { "items:\($0)" }, minItems.map { "min-items:\($0)" },
            shrink.map { "shrink:\($0)" }, validUntil.map { "valid-until:\($0)" }, madeAt.map { "made-at:\($0)" },
            madeWithin.map { "made-within:\($0)" },
        ].compactMap(\.self) + proofLines
    }

    /// Whether something says what the items of a copy are.
    package var countsItems: Bool { items != nil || minItems != nil || form == .json || form == .text || form == .pem }

    /// Whether somebody has to look at the bytes of a copy; else its size is all that counts.
    package var readsContent: Bool { form != nil || minItems != nil || !programs.isEmpty }
}

/// What a copy is as a whole, as far as that can be checked.
package enum ContentForm: String, CaseIterable, Hashable, Sendable {
    /// One JSON text or more.
    case json
    /// Text in UTF-8. Its items are the lines that are not empty.
    case text
    /// Well-formed XML (Extensible Markup Language 1.0, 2.1).
    case xml
    /// Texts with encapsulation boundaries (RFC 7468), of which each certificate and each revocation list can be read. Its
    /// items are these texts.
    case pem
    /// One gzip member or more (RFC 1952), each with the right checksum and length.
    case gzip

    /// The same, if jq cannot read it.
    package var foreign: BinaryForm? { BinaryForm(rawValue: rawValue) }
}
