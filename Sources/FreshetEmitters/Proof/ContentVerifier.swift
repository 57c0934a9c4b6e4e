import CCrypto
package import FreshetEventLoop
package import FreshetPipelines
import Glibc

/// Verifies content for the engine, with libcrypto, on workers.
package struct ContentVerifier: ContentVerifying {
    private let workers: WorkerPool

    package init(workers: WorkerPool) { self.workers = workers }

    package func sha256(of body: FetchedBody) async throws(FetchError) -> String {
        switch body {
        case .bytes(let bytes):
            return try await digest(of: bytes, EVP_sha256()).map(Self.hexadecimal).joined()
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
        case .bytes(let bytes):
            return try await digest(of: bytes, EVP_blake2b512())
        case .kept(let kept):
            let digest = try MessageDigest(EVP_blake2b512())
            do throws(RunFailure) {
                return try await kept.pending.reduce(into: digest) { $0.update($1) }.finish()
            } catch {
                throw .failed(error)
            }
        }
    }

    package func isSigned(
        _ message: [UInt8], _ signature: [UInt8], by key: [UInt8]
    ) async throws(FetchError) -> Bool {
        try await workers.run("signature") { () throws(FetchError) in
            guard let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, key, key.count) else {
                throw .failed(MessageDigest.unavailable("Ed25519"))
            }
            defer { EVP_PKEY_free(key) }
            guard let context = EVP_MD_CTX_new() else { throw .failed(MessageDigest.unavailable("Ed25519")) }
            defer { EVP_MD_CTX_free(context) }
            guard EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1 else {
                throw .failed(MessageDigest.unavailable("Ed25519"))
            }
            let verdict = EVP_DigestVerify(context, signature, signature.count, message, message.count)
            // Errors stay in the thread's queue, where later users of the thread would take them for their own errors.
            ERR_clear_error()
            return verdict == 1
        }
    }

    package func key(in path: String) async throws(FetchError) -> MinisignKey {
        try await workers.run("key") { () throws(FetchError) in
            do throws(KeyFileError) {
                return try MinisignKey(contentsOf: path)
            } catch {
                throw .failed(RunFailure(.local, error.message))
            }
        }
    }

    private func digest(of bytes: [UInt8], _ kind: OpaquePointer?) async throws(FetchError) -> [UInt8] {
        let digest = try MessageDigest(kind)
        return try await workers.run("digest") { () throws(FetchError) in
            bytes.withUnsafeBytes { digest.update($0) }
            do throws(RunFailure) {
                return try digest.finish()
            } catch {
                throw .failed(error)
            }
        }
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16)
        return digits.count < 2 ? "0\(digits)" : digits
    }
}

/// Why a file does not contain a valid key.
package struct KeyFileError: Error, Hashable {
    /// A message with the file's path.
    package var message: String
}

extension MinisignKey {
    /// Reads the key from a file in the format of minisign(1). Blocks.
    package init(contentsOf path: String) throws(KeyFileError) {
        func unreadable() -> KeyFileError {
            KeyFileError(message: "the key \(path) cannot be read: \(String(cString: strerror(errno)))")
        }
        // Non-blocking, because opening a FIFO would wait for its writer.
        guard case let raw = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), raw >= 0 else { throw unreadable() }
        let descriptor = OwnedDescriptor(raw)
        var bytes = [UInt8](repeating: 0, count: MinisignKey.fileLimit + 1)
        let count = read(descriptor.rawValue, &bytes, bytes.count)
        guard count >= 0 else { throw unreadable() }
        guard count <= MinisignKey.fileLimit else {
            throw KeyFileError(message: "\(path) is longer than a file with a key, \(MinisignKey.fileLimit) bytes")
        }
        do throws(ValidationError) {
            try self.init(file: Array(bytes[..<count]))
        } catch {
            throw KeyFileError(message: "\(path) \(error.message)")
        }
    }
}

/// A digest that is computed piece by piece.
///
/// `@unchecked Sendable` is safe: its owner passes it on from piece to piece, so that one thread at a time uses it, and
/// libcrypto's contexts are not bound to a thread.
private final class MessageDigest: @unchecked Sendable {
    private let context: OpaquePointer
    private var isGood = true

    init(_ kind: OpaquePointer?) throws(FetchError) {
        guard let kind, let context = EVP_MD_CTX_new() else { throw .failed(Self.unavailable("the digest")) }
        self.context = context
        // This fails only if the system's crypto policy forbids the digest.
        guard EVP_DigestInit_ex(context, kind, nil) == 1 else { throw .failed(Self.unavailable("the digest")) }
    }

    deinit { EVP_MD_CTX_free(context) }

    func update(_ bytes: UnsafeRawBufferPointer) {
        if !bytes.isEmpty, EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) != 1 { isGood = false }
    }

    func finish() throws(RunFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard isGood, EVP_DigestFinal_ex(context, &bytes, &count) == 1 else { throw Self.unavailable("the digest") }
        return Array(bytes[..<Int(count)])
    }

    static func unavailable(_ what: String) -> RunFailure {
        RunFailure(.local, "libcrypto does not provide \(what): the system's crypto policy may forbid it")
    }
}
