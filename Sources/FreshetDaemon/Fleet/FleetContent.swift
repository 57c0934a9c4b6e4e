import FreshetCache
import FreshetEventLoop
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
            var reader = bodies.reader(key, record.digest, size: record.size)
            while let bytes = try await Self.next(&reader, isUnusable) {
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
                guard !reader.isDamaged() else {
                    throw RunFailure(
                        .transient,
                        "the mirror's content does not have the digest that \(record.madeBy) signed; the next run asks"
                            + " the servers of the fleet")
                }
                await isUnusable()
                throw RunFailure(
                    .transient,
                    "the fleet's content does not have the digest that \(record.madeBy) signed; a machine that"
                        + " fetches stores it again")
            }
        }
    }

    private static func next(
        _ reader: inout FleetBodies.Reader, _ isUnusable: @Sendable () async -> Void
    ) async throws(RunFailure) -> [UInt8]? {
        do throws(FleetStoreError) {
            return try await reader.next()
        } catch {
            if error == .incomplete { await isUnusable() }
            throw RunFailure(.transient, "the fleet's content cannot be read: \(error)")
        }
    }
}

/// The content of this machine's copy, which is to be published. It is read in order when the engine needs it: usually it
/// has the content already.
final class FleetCopy: Sendable {
    private struct Reading: ~Copyable {
        let content: StoredGeneration
        var hasher: SHA256Hasher
        /// The bytes that were read.
        var offset: UInt64 = 0

        consuming func digest() throws(CacheError) -> ContentDigest { try hasher.finalize() }
    }

    private let store: CacheStore
    private let pipeline: String
    private let generation: CurrentGeneration?
    private let reading = Mutex<Reading?>(nil)

    /// - Parameter end: the end of the run whose content it is.
    init(_ store: CacheStore, _ pipeline: String, _ end: SharedRunEnd) {
        if case .succeeded(let generation, _) = end { self.generation = generation } else { generation = nil }
        self.store = store
        self.pipeline = pipeline
    }

    /// The next bytes; a range from 0 begins again. The last bytes are returned only if all of them have the digest.
    func bytes(_ range: Range<UInt64>) async throws(FleetStoreError) -> [UInt8] {
        let bytes = await store.readers.run("generation") { [self] in try? next(range) }
        guard let bytes else { throw .incomplete }
        return bytes
    }

    /// Nil: the content is not that of the generation any more. Blocks.
    private func next(_ range: Range<UInt64>) throws(CacheError) -> [UInt8]? {
        guard let generation else { return nil }
        return try reading.withLock { reading throws(CacheError) -> [UInt8]? in
            if range.lowerBound == 0 {
                guard let content = store.open(generation.identity, of: pipeline) else { return nil }
                reading = Reading(content: content, hasher: try SHA256Hasher())
            }
            guard var present = reading.take(), present.offset == range.lowerBound else { return nil }
            var bytes: [UInt8] = []
            while bytes.count < range.count {
                let piece = try present.content.read(range.count - bytes.count)
                guard !piece.isEmpty else { return nil }
                bytes += piece
            }
            bytes.withUnsafeBytes { present.hasher.update($0) }
            present.offset = range.upperBound
            guard present.offset == generation.size else {
                reading = consume present
                return bytes
            }
            return try present.digest() == generation.digest ? bytes : nil
        }
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
