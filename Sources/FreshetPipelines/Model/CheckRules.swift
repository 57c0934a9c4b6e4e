/// The checks that a snapshot must pass before it replaces the current copy. If a check rejects it, the copy stays.
package struct CheckRules: Hashable, Sendable {
    /// A jq program whose last output must be neither `false` nor `null`.
    package var jq: String?
    /// The fewest bytes; 1 unless configured, since an empty answer is never a good copy.
    package var minBytes: UInt64
    /// The most bytes, of the answer and of the snapshot.
    package var maxBytes: UInt64
    /// The accepted media types of the answer, such as `application/json`; empty: any.
    package var types: [String]
    /// The format that the whole copy must have; nil: any.
    package var form: ContentForm?
    /// A jq program for the list or object whose members are the copy's items; nil: the copy itself, if it is a list,
    /// or the non-empty lines of a text.
    package var items: String?
    /// The fewest items; nil: any number.
    package var minItems: Int?
    /// The largest share of its items, in percent, that the copy may lose in one change; without a definition of items
    /// (``countsItems``), the share of its bytes. Nil: all of them.
    package var shrink: Int?
    /// A jq program for the end of the data's validity: data with a time in the past is rejected.
    package var validUntil: String?
    /// A jq program for the time when the data was made.
    package var madeAt: String?
    /// The greatest age by `madeAt`; nil: any age, but a time in the future is rejected.
    package var madeWithin: Duration?
    /// The checksum list with the answer's checksum; nil: none. Like `minisign`, only for a pipeline with one request.
    package var sha256: ChecksumRule?
    /// The signature of the answer; nil: none.
    package var minisign: SignatureRule?
    /// A program that must accept the copy; nil: none.
    package var exec: InspectionRule?

    /// The size limit unless configured: 64 MiB.
    package static let defaultMaxBytes: UInt64 = 64 << 20
    /// How far the origin's clock may be ahead of this machine's clock before `madeAt` counts as a time in the future.
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

    /// The jq programs of the checks.
    package var programs: [String] { [jq, items, validUntil, madeAt].compactMap(\.self) }

    /// The checks that were added after the first version of the binding, a line each. A pipeline without them keeps
    /// the binding that it always had.
    var laterLines: [String] {
        [
            form.map { "form:\($0)" }, items.map { "items:\($0)" }, minItems.map { "min-items:\($0)" },
            shrink.map { "shrink:\($0)" }, validUntil.map { "valid-until:\($0)" }, madeAt.map { "made-at:\($0)" },
            madeWithin.map { "made-within:\($0)" },
        ].compactMap(\.self) + proofLines
    }

    /// Whether the items of a copy are defined.
    package var countsItems: Bool { items != nil || minItems != nil || form == .json || form == .text || form == .pem }

    /// Whether a check reads the bytes of a copy; otherwise only the size counts.
    package var readsContent: Bool { form != nil || minItems != nil || !programs.isEmpty }
}

/// The format of a whole copy, as far as it can be checked.
package enum ContentForm: String, CaseIterable, Hashable, Sendable {
    /// One JSON text or more.
    case json
    /// Text in UTF-8. Its items are the lines that are not empty.
    case text
    /// Well-formed XML (Extensible Markup Language 1.0, 2.1).
    case xml
    /// Texts with encapsulation boundaries (RFC 7468); every certificate and revocation list among them must be
    /// readable. Its items are these texts.
    case pem
    /// One gzip member or more (RFC 1952), each with the right checksum and length.
    case gzip

    /// The same format, if jq cannot read it.
    package var foreign: BinaryForm? { BinaryForm(rawValue: rawValue) }
}
