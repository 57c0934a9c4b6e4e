import FreshetCache
import FreshetFleet
import FreshetModel
import FreshetPipelines
import Synchronization

extension SharedContent {
    /// The content of a record, in chunks from its bucket.
    ///
    /// - Parameter isUnusable: called if the stored content is damaged or incomplete.
    init(
        _ record: FleetRecord, _ key: FleetKey, _ bodies: FleetBodies, isUnusable: @escaping @Sendable () async -> Void
    ) {
        self.init(digest: record.digest, size: record.size, validators: record.validators) {
            (append) throws(RunFailure) in
            var hasher: SHA256Hasher
            do throws(CacheError) {
                hasher = try SHA256Hasher()
            } catch {
                throw RunFailure(error)
            }
            for number in 0..<FleetBodies.chunks(of: record.size) {
                let bytes = try await Self.chunk(number, record, key, bodies, isUnusable)
                bytes.withUnsafeBytes { hasher.update($0) }
                try await append(bytes)
            }
            let digest: ContentDigest
            do throws(CacheError) {
                digest = try hasher.finalize()
            } catch {
                throw RunFailure(error)
            }
            guard digest == record.digest else {
                await isUnusable()
                throw RunFailure(
                    .transient,
                    "the fleet's content does not have the digest that \(record.madeBy) signed; a machine that"
                        + " fetches stores it again")
            }
        }
    }

    private static func chunk(
        _ number: UInt64, _ record: FleetRecord, _ key: FleetKey, _ bodies: FleetBodies,
        _ isUnusable: @Sendable () async -> Void
    ) async throws(RunFailure) -> [UInt8] {
        do throws(FleetStoreError) {
            return try await bodies.chunk(number, key, record.digest, size: record.size)
        } catch {
            if error == .incomplete { await isUnusable() }
            throw RunFailure(.transient, "the fleet's content cannot be read: \(error)")
        }
    }
}

/// The content of this machine's copy, which is to be published. It is read once, when the engine needs it: usually it
/// has the content already.
final class FleetCopy: Sendable {
    private let store: CacheStore
    private let definition: PipelineDefinition
    private let digest: ContentDigest?
    private let content = Mutex<[UInt8]?>(nil)

    /// - Parameter end: the end of the run whose content it is.
    init(_ store: CacheStore, _ definition: PipelineDefinition, _ end: SharedRunEnd) {
        if case .succeeded(let generation, _) = end { digest = generation.digest } else { digest = nil }
        self.store = store
        self.definition = definition
    }

    func bytes(_ range: Range<UInt64>) async throws(FleetStoreError) -> [UInt8] {
        let bytes = try await all()
        guard range.upperBound <= UInt64(bytes.count) else { throw .incomplete }
        return Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
    }

    private func all() async throws(FleetStoreError) -> [UInt8] {
        if let known = content.withLock({ $0 }) { return known }
        // A copy that has changed meanwhile, by a rollback for instance, is not what the record says.
        guard let bytes = try? await store.copy(of: definition), (try? ContentDigest(of: bytes)) == digest else {
            throw .incomplete
        }
        content.withLock { $0 = bytes }
        return bytes
    }
}

extension FleetRunEnd {
    /// The end of a run as the other machines need to know it.
    ///
    /// - Parameter redact: removes secrets of this machine from a reason.
    init(_ end: SharedRunEnd, redact: (String) -> String) {
        switch end {
        case .succeeded(let generation, let validators):
            self = .succeeded(digest: generation.digest, size: generation.size, validators)
        case .failed(let failure):
            switch failure.kind {
            // The origin is not the reason: another machine may succeed.
            case .local, .deadline, .budget, .absent: self = .cancelled
            // The checks are this machine's own.
            case .content: self = .rejected
            case .connection, .transient, .certificateDate, .refused:
                self = .failed(reason: redact(failure.publicMessage), retryAfter: failure.retryAfter)
            }
        case .cancelled: self = .cancelled
        }
    }
}
