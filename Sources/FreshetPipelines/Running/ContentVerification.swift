/// Verifies a body with files that are published beside it: a checksum list, a signature. It verifies the body as
/// received, before any program has processed it.
struct ContentVerification: Sendable {
    let rules: CheckRules
    /// The request for the body.
    let source: HTTPSource
    let verifier: any ContentVerifying
    /// Completes a request for a file beside the content: with parameter values, and the source's header fields if
    /// allowed.
    let request: @Sendable (HTTPSource) throws(FetchError) -> HTTPSource
    /// Fetches a file of at most this number of bytes.
    let fetch: @Sendable (HTTPSource, UInt64) async throws(FetchError) -> [UInt8]

    /// The result of the verification.
    struct Outcome: Hashable, Sendable {
        /// Why the body is rejected; nil: it passed the configured checks.
        var rejection: RunFailure?
        /// The publisher's trusted comment in the signature.
        var comment: String?
    }

    /// - Throws: a failure if the result is unknown because a file beside the content cannot be fetched.
    func outcome(on body: FetchedBody) async throws(FetchError) -> Outcome {
        var outcome = Outcome()
        if let rule = rules.sha256 {
            do throws(FetchError) {
                outcome.rejection = try await rejection(of: body, by: rule)
            } catch {
                throw error.of("check.sha256")
            }
        }
        if let rule = rules.minisign, outcome.rejection == nil {
            do throws(FetchError) {
                outcome = try await self.outcome(on: body, by: rule)
            } catch {
                throw error.of("check.minisign")
            }
        }
        return outcome
    }

    /// A hint: an origin does not replace a file and the files beside it atomically.
    private static let race = "if the origin is replacing its files, the next attempt succeeds"

    /// - Parameter rejection: files that do not match may match in a moment.
    private func rejected(_ key: String, _ why: String, _ rejection: RunFailure.Rejection = .brief) -> RunFailure {
        RunFailure(.content, "check.\(key): \(why)", rejection: rejection)
    }

    // MARK: Checksums

    private func rejection(of body: FetchedBody, by rule: ChecksumRule) async throws(FetchError) -> RunFailure? {
        let expected: String
        switch rule {
        case .digest(let digest): expected = digest
        case .list(let request, let name):
            let list = ChecksumList(try await fetch(try self.request(request), ChecksumRule.listLimit))
            do throws(ChecksumList.ValidationError) {
                expected = try list.digest(of: name ?? source.fileName)
            } catch {
                return rejected("sha256", error.sentence)
            }
        }
        let found = try await verifier.sha256(of: body)
        guard found != expected else { return nil }
        guard case .list = rule else {
            return rejected(
                "sha256", "the content has the checksum \(found), not \(expected); if it is right, configure it",
                .lasting)
        }
        return rejected("sha256", "the content has the checksum \(found), but the list says \(expected); \(Self.race)")
    }

    // MARK: Signatures

    private func outcome(on body: FetchedBody, by rule: SignatureRule) async throws(FetchError) -> Outcome {
        let file = try await fetch(
            try rule.signature.map(request) ?? source.adding(SignatureRule.suffix).asGet, SignatureRule.signatureLimit)
        let signature: MinisignSignature
        do throws(MinisignSignature.ValidationError) {
            signature = try MinisignSignature(file)
        } catch {
            return Outcome(rejection: rejected("minisign", "the signature file \(error.message)"))
        }
        let key =
            switch rule.key {
            case .key(let key): key
            case .file(let path): try await verifier.key(in: path)
            }
        if let rejection = try await rejection(of: body, signature, by: key) { return Outcome(rejection: rejection) }
        return Outcome(comment: String(decoding: signature.trustedComment, as: UTF8.self))
    }

    private func rejection(
        of body: FetchedBody, _ signature: MinisignSignature, by key: MinisignKey
    ) async throws(FetchError) -> RunFailure? {
        guard signature.number == key.number else {
            return rejected(
                "minisign",
                "the signature was made with the key \(MinisignKey.name(of: signature.number)), "
                    + "and \(key.name) is trusted; "
                    + "if the publisher has a new key, configure it", .passing)
        }
        let message: [UInt8]
        switch signature.kind {
        case .digest: message = try await verifier.blake2b(of: body)
        case .whole:
            guard body.size <= SignatureRule.wholeLimit else {
                return rejected(
                    "minisign",
                    "the signature is of the old kind, which is accepted for contents of at most "
                        + "\(SignatureRule.wholeLimit) bytes; have the publisher sign it without 'minisign -l'",
                    .passing)
            }
            message = try await body.content()
            // The signature does not cover its kind: the digest of another signed content, with that content's
            // signature, would pass as a signed content.
            guard message.count != MinisignSignature.digestBytes else {
                return rejected(
                    "minisign",
                    "the signature is of the old kind, which proves nothing of a content of "
                        + "\(MinisignSignature.digestBytes) bytes; have the publisher sign it without 'minisign -l'",
                    .passing)
            }
        }
        guard try await verifier.isSigned(message, signature.signature, by: key.ed25519) else {
            return rejected("minisign", "the signature does not match this content; \(Self.race)")
        }
        guard try await verifier.isSigned(signature.globalMessage, signature.globalSignature, by: key.ed25519) else {
            return rejected("minisign", "the trusted comment does not match its signature")
        }
        return nil
    }
}

extension FetchedBody {
    /// The whole body.
    package func content() async throws(FetchError) -> [UInt8] {
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
    /// The same request without a body.
    fileprivate var asGet: HTTPSource {
        var source = self
        source.method = .get
        return source
    }
}

extension ChecksumList.ValidationError {
    /// The error message.
    fileprivate var sentence: String {
        switch self {
        case .empty: "the checksum list has no SHA-256 checksum"
        case .missing(let name): "the list has no checksum for '\(name)'; set 'name' to the file's name in the list"
        case .ambiguous(let name):
            "the list has several files '\(name)' with different checksums; set 'name' to the path of one of them"
        case .noName:
            "the list has checksums of several files, and the URL of the source has no file name; set name: FILE"
        }
    }
}
