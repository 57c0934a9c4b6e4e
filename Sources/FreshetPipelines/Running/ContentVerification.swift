/// Looks whether a body that an origin sent is what its publisher made, by what lies beside it: a list of sums, a
/// signature. What is compared is the body as it came, before any program has seen it.
struct ContentVerification: Sendable {
    let rules: CheckRules
    /// The request that was answered with the body.
    let source: HTTPSource
    let prover: any ContentVerifying
    /// The requests for what lies beside it, filled, with what of the source goes along.
    let request: @Sendable (HTTPSource) throws(FetchError) -> HTTPSource
    /// Asks for something of so many bytes at most.
    let ask: @Sendable (HTTPSource, UInt64) async throws(FetchError) -> [UInt8]

    /// What came of it.
    struct Outcome: Hashable, Sendable {
        /// Why the body is not what its publisher made; nil: it is, as far as that is to be looked at.
        var refusal: RunFailure?
        /// What its publisher says of it in the signature.
        var comment: String?
    }

    /// - Throws: why it is not known: what lies beside it is not to be had.
    func verdict(on body: FetchedBody) async throws(FetchError) -> Outcome {
        var verdict = Outcome()
        if let rule = rules.sha256 {
            do throws(FetchError) {
                verdict.refusal = try await refusal(of: body, by: rule)
            } catch {
                throw error.of("check.sha256")
            }
        }
        if let rule = rules.minisign, verdict.refusal == nil {
            do throws(FetchError) {
                verdict = try await self.verdict(on: body, by: rule)
            } catch {
                throw error.of("check.minisign")
            }
        }
        return verdict
    }

    /// Origins do not replace a file and what lies beside it at one instant.
    private static let race = "if the origin is just replacing its files, that mends itself"

    /// - Parameter refusal: what does not fit together may fit in a moment.
    private func refused(_ key: String, _ why: String, _ refusal: RunFailure.Refusal = .brief) -> RunFailure {
        RunFailure(.content, "check.\(key): \(why)", refusal: refusal)
    }

    // MARK: Sums

    private func refusal(of body: FetchedBody, by rule: ChecksumRule) async throws(FetchError) -> RunFailure? {
        let list = ChecksumList(try await ask(try request(rule.list), ChecksumRule.listLimit))
        let wanted: String
        do throws(ChecksumList.ValidationError) {
            wanted = try list.digest(of: rule.name ?? source.fileName)
        } catch {
            return refused("sha256", error.sentence)
        }
        let found = try await prover.sha256(of: body)
        guard found != wanted else { return nil }
        return refused("sha256", "the content has the sum \(found), and the list says \(wanted); \(Self.race)")
    }

    // MARK: Signatures

    private func verdict(on body: FetchedBody, by rule: SignatureRule) async throws(FetchError) -> Outcome {
        let file = try await ask(
            try rule.signature.map(request) ?? source.adding(SignatureRule.suffix).asGet, SignatureRule.signatureLimit)
        let signature: MinisignSignature
        do throws(MinisignSignature.ValidationError) {
            signature = try MinisignSignature(file)
        } catch {
            return Outcome(refusal: refused("minisign", "what lies beside the content \(error.message)"))
        }
        let key =
            switch rule.key {
            case .key(let key): key
            case .file(let path): try await prover.key(in: path)
            }
        if let refusal = try await refusal(of: body, signature, by: key) { return Outcome(refusal: refusal) }
        return Outcome(comment: String(decoding: signature.trustedComment, as: UTF8.self))
    }

    private func refusal(
        of body: FetchedBody, _ signature: MinisignSignature, by key: MinisignKey
    ) async throws(FetchError) -> RunFailure? {
        guard signature.number == key.number else {
            return refused(
                "minisign",
                "the signature was made with the key \(MinisignKey.name(of: signature.number)), and \(key.name) is trusted; "
                    + "if the publisher has a new key, configure that", .passing)
        }
        let message: [UInt8]
        switch signature.kind {
        case .digest: message = try await prover.blake2b(of: body)
        case .whole:
            guard body.size <= SignatureRule.wholeLimit else {
                return refused(
                    "minisign",
                    "the signature is of the old kind, which is taken for contents of at most "
                        + "\(SignatureRule.wholeLimit) bytes; have the publisher sign it without 'minisign -l'",
                    .passing)
            }
            message = try await body.content()
            // Nothing that is signed says which kind it is: the digest of another content, with that content's signature,
            // would pass for a content that was signed.
            guard message.count != MinisignSignature.digestBytes else {
                return refused(
                    "minisign",
                    "the signature is of the old kind, which proves nothing of a content of "
                        + "\(MinisignSignature.digestBytes) bytes; have the publisher sign it without 'minisign -l'",
                    .passing)
            }
        }
        guard try await prover.isSigned(message, signature.signature, by: key.ed25519) else {
            return refused("minisign", "the signature is not that of this content; \(Self.race)")
        }
        guard try await prover.isSigned(signature.globalMessage, signature.globalSignature, by: key.ed25519) else {
            return refused("minisign", "the trusted comment is not the one that was signed")
        }
        return nil
    }
}

extension FetchedBody {
    /// All of it.
    func content() async throws(FetchError) -> [UInt8] {
        switch self {
        case .bytes(let bytes): return bytes
        case .kept(let kept):
            do throws(RunFailure) {
                return try await kept.pending.content()
            } catch {
                throw .failed(error)
            }
        }
    }
}

extension HTTPSource {
    /// The same without a body.
    fileprivate var asGet: HTTPSource {
        var source = self
        source.method = .get
        return source
    }
}

extension ChecksumList.ValidationError {
    /// A sentence.
    fileprivate var sentence: String {
        switch self {
        case .empty: "there is no SHA-256 sum in what lies beside the content"
        case .notThere(let name): "the list has no sum of '\(name)'; 'name' says what it is called there"
        case .ambiguous(let name):
            "the list has several files '\(name)' with different sums; 'name' takes the path of one of them"
        case .noName: "the list has sums of files, and the URL of the source names none; say which: name: FILE"
        }
    }
}
