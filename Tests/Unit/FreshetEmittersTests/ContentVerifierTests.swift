import FreshetEventLoop
import TestSupport
import Testing

@testable import FreshetEmitters
@testable import FreshetPipelines

@Suite("Digests and signatures by libcrypto")
struct ContentVerifierTests {
    let verifier = ContentVerifier(workers: WorkerPool())

    /// A stored body.
    private func kept(_ bytes: [UInt8]) async throws -> FetchedBody {
        let body = try await ScriptedBodyStore().begin(expecting: nil)
        try await body.append(bytes)
        return .kept(StoredBody(body, size: bytes.count))
    }

    /// 600,000 bytes, of which no two pieces are equal.
    private static let long = (0..<600_000).map { UInt8($0 * 7 % 251) }

    private static let key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"

    /// A key, a content and its file of signature. The first two are from the documentation of minisign's libraries,
    /// the others were made by minisign 0.11.
    private static let signatures: [(key: String, content: [UInt8], file: [String])] = [
        (
            key, Array("test".utf8),
            [
                "RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=",
                "timestamp:1556193335\tfile:test",
                "y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==",
            ]
        ),
        (
            key, Array("test".utf8),
            [
                "RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=",
                "timestamp:1555779966\tfile:test",
                "QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==",
            ]
        ),
        (
            "RWRonUe4KqTGw7KY7QUb4FQcKcVsLnmCSrk9ywp7IbfuX37gFaUba9/l", long,
            [
                "RURonUe4KqTGw94J64gXfEtFcWYBZ+ZUXsNMN2IKgEDQqw2w9yphpsDFWUT7Lk6UGrVV7e7OvfJ5MGbClgvqAuXx3Eqr6WmtDA8=",
                "a big one",
                "4nhlxECWK+4hLJB0G2e/SXiHElMHWE+qCu9AdoIAMEF4n6D8smgQ1bJDkJmPM6lq7sxLt5gcZHJ9qzHcjb/KCg==",
            ]
        ),
        (
            "RWRonUe4KqTGw7KY7QUb4FQcKcVsLnmCSrk9ywp7IbfuX37gFaUba9/l", long,
            [
                "RWRonUe4KqTGw46fbVE9JJdQCEobk30eYEyIr3CUiL7OJwr5LjJKsuPf3xLa9PCgdw5a6BhfqCe/LVEPXsNf7/huoc9i/WwaegM=",
                "old",
                "sbRZ/737Rg8yktydOQ1xChmB3UbVHSszK/UZG64tb0PjhQMisVWUBd4+v5le+3ignS+Bx7sazo/e8IExa4HDAQ==",
            ]
        ),
    ]

    private func signature(_ file: [String]) throws -> MinisignSignature {
        try MinisignSignature(
            Array("untrusted comment: x\n\(file[0])\ntrusted comment: \(file[1])\n\(file[2])\n".utf8))
    }

    private func outcome(
        on body: FetchedBody, _ file: [String], by key: String
    ) async throws -> ContentVerification.Outcome {
        var rules = CheckRules()
        rules.minisign = SignatureRule(.key(try MinisignKey(key)))
        let text = "untrusted comment: x\n\(file[0])\ntrusted comment: \(file[1])\n\(file[2])\n"
        return try await ContentVerification(
            rules: rules, source: HTTPSource(url: "https://a.example/b", host: "a.example"), verifier: verifier,
            request: { (source) throws(FetchError) in source }, fetch: { _, _ in Array(text.utf8) }
        ).outcome(on: body)
    }

    @Test("A signature by minisign matches its content in memory and on disk, and does not match changed content")
    func signed() async throws {
        for (key, content, file) in Self.signatures {
            for body in [.bytes(content), try await kept(content)] {
                #expect(try await outcome(on: body, file, by: key) == ContentVerification.Outcome(comment: file[1]))
            }
            var other = content
            other[content.count - 1] ^= 1
            for body in [.bytes(other), try await kept(other), .bytes([])] {
                let rejection = try await outcome(on: body, file, by: key).rejection
                #expect(rejection?.message.contains("does not match this content") == true)
            }
            let comment = try await outcome(on: .bytes(content), [file[0], file[1] + " ", file[2]], by: key)
            #expect(comment.rejection?.message.contains("the trusted comment does not match") == true)
            #expect(comment.comment == nil)
        }
    }

    @Test("A signature does not match if one of its bits is changed, or with another key of the same number")
    func altered() async throws {
        let (key, content, file) = Self.signatures[0]
        let signature = try signature(file)
        let message = try await verifier.blake2b(of: .bytes(content))
        let own = try MinisignKey(key)
        #expect(try await verifier.isSigned(message, signature.signature, by: own.ed25519))
        for place in stride(from: 0, to: 64, by: 7) {
            var altered = signature.signature
            altered[place] ^= 0x10
            #expect(try await !verifier.isSigned(message, altered, by: own.ed25519))
        }
        #expect(try await !verifier.isSigned(message, Array(signature.signature.dropLast()), by: own.ed25519))
        #expect(try await !verifier.isSigned(message, [], by: own.ed25519))
        var forged = own.ed25519
        forged[0] ^= 1
        #expect(try await !verifier.isSigned(message, signature.signature, by: forged))
    }

    @Test("Digests are equal to those of sha256sum(1) and b2sum(1)")
    func digests() async throws {
        // sha256sum(1) and b2sum(1) of "abc".
        let abc = FetchedBody.bytes(Array("abc".utf8))
        #expect(
            try await verifier.sha256(of: abc) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        let blake =
            "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
            + "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"
        for body in [abc, try await kept(Array("abc".utf8))] {
            let digits = try await verifier.blake2b(of: body).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
            #expect(digits.joined() == blake)
        }
        #expect(
            try await verifier.sha256(of: .bytes([]))
                == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    }

    @Test("Signatures in the old format are accepted for contents up to a limit")
    func wholeLimit() async throws {
        let (key, _, file) = Self.signatures[3]
        let body = FetchedBody.kept(
            StoredBody(try await ScriptedBodyStore().begin(expecting: nil), size: SignatureRule.wholeLimit + 1))
        let rejection = try await outcome(on: body, file, by: key).rejection
        #expect(rejection?.message.contains("of at most 67108864 bytes; have the publisher sign it without") == true)
    }

    @Test("A key is read from its file; the failure names a file that is invalid, too long or missing")
    func keyFile() async throws {
        let files = try TemporaryDirectory()
        try files.write("untrusted comment: minisign public key\n\(Self.key)\n", to: "good.pub")
        try files.write(String(repeating: " ", count: MinisignKey.fileLimit + 1), to: "long.pub")
        try files.write("secret", to: "bad.pub")
        _ = try files.makeFIFO("fifo.pub")
        #expect(try await verifier.key(in: "\(files.path)/good.pub").description == Self.key)
        for (name, words) in [
            ("long.pub", "is longer than a file with a key, 4096 bytes"), ("bad.pub", "is not a line of Base64"),
            ("none.pub", "cannot be read: No such file or directory"), ("fifo.pub", "contains no key"),
        ] {
            let failure = try await failureOf { () async throws(FetchError) in
                try await verifier.key(in: "\(files.path)/\(name)")
            }
            #expect(failure.kind == .local && failure.message.contains(words), "\(name)")
        }
    }
}
