/// A hash of everything that decides what an answer becomes: FNV-1a with 128 bits over texts, each followed by a byte
/// that no text contains. Not for input that an adversary may choose.
struct BindingHash {
    private var hash: UInt128 = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D
    /// What was added, if it is recorded.
    private(set) var recorded: [UInt8] = []
    private let isRecording: Bool

    /// - Parameter recording: also keeps what is added, for a hash that resists an adversary.
    init(recording isRecording: Bool = false) { self.isRecording = isRecording }

    private static let prime: UInt128 = 1 << 88 | 0x13B

    /// The hash as hexadecimal digits, without leading zeros. (`String(_:radix:)` of a `UInt128` took half of the time
    /// that a start needs for the bindings.)
    var text: String { Self.text(of: value) }

    /// The hash.
    var value: UInt128 { hash }

    /// The digits of a hash, see ``text``.
    static func text(of hash: UInt128) -> String {
        let digits = max(1, (UInt128.bitWidth - hash.leadingZeroBitCount + 3) / 4)
        return String(unsafeUninitializedCapacity: digits) { buffer in
            for index in 0..<digits {
                let digit = UInt8(truncatingIfNeeded: hash >> UInt128(4 * (digits - 1 - index)) & 0xF)
                buffer[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
            }
            return digits
        }
    }

    /// The hash folded to 64 bits.
    var short: UInt64 { UInt64(truncatingIfNeeded: hash ^ (hash >> 64)) }

    mutating func add(_ text: String) { add(text.utf8) }

    /// The same as a text that begins with this label. Each run hashes some of them, and to make such a text takes
    /// longer than to hash it.
    mutating func add(_ label: StaticString, _ text: String) {
        label.withUTF8Buffer { for byte in $0 { add(byte) } }
        add(text.utf8)
    }

    /// Bytes that are UTF-8.
    mutating func add(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { add(byte) }
        add(0xFF)  // UTF-8 has no such byte
    }

    /// Appends to the text that ``endText()`` ends.
    mutating func append(_ text: String) { for byte in text.utf8 { add(byte) } }

    /// Appends the digits of a number.
    mutating func append(_ number: UInt64, radix: UInt64 = 10) {
        var place: UInt64 = 1
        while number / place >= radix { place *= radix }
        while place > 0 {
            add(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / place % radix))
            place /= radix
        }
    }

    /// Ends a text of several parts, which is the same as to ``add(_:)`` the whole text.
    mutating func endText() { add(0xFF) }

    private mutating func add(_ byte: UInt8) {
        if isRecording { recorded.append(byte) }
        hash = (hash ^ UInt128(byte)) &* Self.prime
    }
}

extension BindingHash {
    /// Header fields are included too, since `Accept` and similar fields choose the representation (RFC 9110, 12.5.5).
    /// Of a credential only the name is included, so that a new token for the same account causes no second download.
    mutating func add(_ source: SourceDefinition) {
        switch source {
        case .http(let source):
            add("url:", source.url)
            for mirror in source.mirrors?.list ?? [] { add("mirror:", mirror.url) }
            for header in source.headers {
                add(header.name.lowercased())
                switch header.value {
                case .text(let value): add("text:", value)
                case .credential(let name, let form): add("credential:\(form.scheme) \(name)")
                }
            }
            if case .post(let body, let contentType) = source.method {
                add("post:\(contentType)")
                add(body)
            }
            if let path = source.unixSocket { add("unix-socket:\(path)") }
            if let proof = source.clientCertificate {
                add("client-certificate:\(proof.certificate) \(proof.key ?? "")")
            }
            if let path = source.certificateAuthority { add("certificate-authority:\(path)") }
        case .command(let arguments): add("command:\(arguments)")
        case .file(let path): add("file:", path)
        case .copy(let pipeline, let file): add("copy:\(pipeline) \(file)")
        case .joined(let sources):
            for source in sources {
                add("joined:\(source.name)")
                add(source.stage)
            }
        }
    }

    /// A stage with all stages below it, and the values of the parameters that their placeholders name.
    ///
    /// - Parameter others: further sources with placeholders.
    mutating func add(
        _ stage: StageDefinition, with parameters: ParameterValues, and others: [HTTPSource] = []
    ) {
        add(stage)
        guard !parameters.isEmpty else { return }
        let sources = stage.all.map(\.source) + others.map(SourceDefinition.http)
        let placeholders = Set(sources.flatMap(\.placeholders))
        for placeholder in placeholders.sorted(by: { $0.description < $1.description }) {
            guard let value = parameters.value(placeholder) else { continue }
            add("\(placeholder)")
            add(value)
        }
    }

    /// A stage with all stages below it.
    mutating func add(_ stage: StageDefinition) {
        add(stage.source)
        if let unpack = stage.unpack { add("unpack:\(unpack)") }
        if let pages = stage.pages { add("pages:\(pages.summary)") }
        if stage.format != .json { add("format:\(stage.format)") }
        if let transform = stage.transform { add("of:\(transform)") }
        guard let each = stage.each else { return }
        add("each:\(each.name) \(each.onError)")
        add(each.key)
        add(each.stage)
    }
}

extension HTTPHeader.CredentialForm {
    fileprivate var scheme: String {
        switch self {
        case .field, .ownField: ""
        case .bearer: "Bearer"
        case .basic, .client: "Basic"
        case .oauth2(let client): "\(client.tokenURL) \(client.identifier) \(client.scope ?? "")"
        }
    }
}
