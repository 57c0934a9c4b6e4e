package import FreshetPipelines
package import FreshetSignals

/// Cryptography for tests: digests and signatures are numbers, equal for equal bytes.
package struct ScriptedVerifier: ContentVerifying {
    /// Keys by path.
    package var keys: [String: MinisignKey]

    package init(keys: [String: MinisignKey] = [:]) { self.keys = keys }

    /// Instead of SHA-256, in the same format.
    package static func sum(of text: String) -> String { sum(of: Array(text.utf8)) }

    static func sum(of bytes: [UInt8]) -> String {
        number(bytes, count: 32).map { byte in
            let digits = String(byte, radix: 16)
            return digits.count < 2 ? "0\(digits)" : digits
        }.joined()
    }

    /// Instead of BLAKE2b.
    package static func digest(of text: String) -> [UInt8] { number(Array(text.utf8), count: 64) }

    package static func signature(of message: [UInt8], by key: [UInt8]) -> [UInt8] { number(message + key, count: 64) }

    private static func number(_ bytes: [UInt8], count: Int) -> [UInt8] {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return (0..<count).map { UInt8(truncatingIfNeeded: hash >> (8 * UInt64($0 % 8))) }
    }

    package func sha256(of body: FetchedBody) async throws(FetchError) -> String {
        switch body {
        case .bytes(let bytes): return Self.sum(of: bytes)
        case .kept(let kept):
            do throws(RunFailure) {
                return try await kept.pending.digest()
            } catch {
                throw .failed(error)
            }
        }
    }

    package func blake2b(of body: FetchedBody) async throws(FetchError) -> [UInt8] {
        switch body {
        case .bytes(let bytes): return Self.number(bytes, count: 64)
        case .kept(let kept):
            do throws(RunFailure) {
                return Self.number(try await kept.pending.content(), count: 64)
            } catch {
                throw .failed(error)
            }
        }
    }

    package func isSigned(
        _ message: [UInt8], _ signature: [UInt8], by key: [UInt8]
    ) async throws(FetchError) -> Bool { signature == Self.signature(of: message, by: key) }

    package func key(in path: String) async throws(FetchError) -> MinisignKey {
        guard let key = keys[path] else { throw .failed(RunFailure(.local, "the key \(path) cannot be read")) }
        return key
    }
}

/// An inspector with scripted results, which records the candidates.
package final class ScriptedInspector: CandidateInspecting {
    package struct State {
        /// Nil: the candidate passes.
        package var failure: RunFailure?
        package var looked: [String] = []
    }

    package let state = Lock(State())

    package init() {}

    package func inspect(
        _ candidate: FetchedBody, of definition: PipelineDefinition, by rule: InspectionRule
    ) async throws(FetchError) {
        let text: String
        switch candidate {
        case .bytes(let bytes): text = String(decoding: bytes, as: UTF8.self)
        case .kept(let kept): text = String(decoding: (try? await kept.pending.content()) ?? [], as: UTF8.self)
        }
        let failure = state.withLock { state in
            state.looked.append("\(definition.name) \(rule.command.joined(separator: " ")): \(text)")
            return state.failure
        }
        if let failure { throw .failed(failure) }
    }
}

/// Unpacks texts that begin with `packed:` to the rest of the text. Any other text is a failure.
package struct ScriptedUnpacker: Unpacking {
    package init() {}

    package func unpack(
        _ body: FetchedBody, by rule: UnpackRule, maxBytes: UInt64, bodyStore: (any BodyStoring)?
    ) async throws(FetchError) -> FetchedBody {
        let bytes = try await body.content()
        guard bytes.starts(with: "packed:".utf8) else {
            throw .failed(RunFailure(.content, "the answer is not \(rule)"))
        }
        return .bytes(Array(bytes.dropFirst(7)))
    }
}
