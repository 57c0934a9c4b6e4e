import FreshetVarlink

/// The answer of a token endpoint (RFC 6749, 5.1). It comes from outside: reading it is linear, and nesting is bounded.
struct TokenAnswer: Hashable {
    var token: String
    /// Nil: the server does not say how long the token is valid.
    var life: Duration?

    /// The most bytes of an answer.
    static let sizeLimit: UInt64 = 64 << 10
    /// The longest token, in bytes: the limit of secrets.
    static let tokenLimit = 8_192
    /// The longest life that is believed, in seconds: 30 days.
    static let longestLife = 2_592_000

    /// The most characters of a number: more than a Double can have.
    static let digitsLimit = 32

    struct ValidationError: Error, Hashable {
        /// What is wrong, without a quotation: it may contain a token.
        var sentence: String
    }

    init(_ bytes: [UInt8]) throws(ValidationError) {
        // The scanner refuses names that occur twice.
        guard let list = try? JSONScanner.members(of: bytes) else {
            throw ValidationError(sentence: "its answer is not a JSON object (RFC 6749, 5.1)")
        }
        let members = Dictionary(list.map { ($0.name, $0.value) }) { first, _ in first }
        func text(_ name: String) -> [UInt8]? {
            members[name].flatMap { JSONScanner.string($0, of: bytes) }.map { Array($0.utf8) }
        }
        guard let token = text("access_token") else {
            throw ValidationError(sentence: "its answer has no 'access_token'")
        }
        // RFC 6750, 2.1: a token has these characters, and so cannot end the header field.
        guard !token.isEmpty, token.count <= Self.tokenLimit, token.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw ValidationError(
                sentence:
                    "its 'access_token' is empty, has more than \(Self.tokenLimit) bytes, or is not printable ASCII")
        }
        guard text("token_type").map({ $0.map { $0 | 0x20 } }) == Array("bearer".utf8) else {
            throw ValidationError(sentence: "its 'token_type' is not Bearer")
        }
        self.token = String(decoding: token, as: UTF8.self)
        // Some servers send the number as a text.
        let digits = text("expires_in") ?? members["expires_in"].map { Array(bytes[$0]) } ?? []
        guard digits.count <= Self.digitsLimit, let seconds = Double(String(decoding: digits, as: UTF8.self)),
            seconds.isFinite
        else { return }
        life = .seconds(Int64(min(max(0, seconds), Double(Self.longestLife))))
    }
}
