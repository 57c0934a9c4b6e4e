package import FreshetModel
import FreshetNATS

/// The contents of a fleet: each in chunks, by pipeline and digest. A content is stored before its record, and is
/// removed after a later record has replaced it.
package struct FleetBodies: Sendable {
    private let store: FleetStore

    package init(_ store: FleetStore) { self.store = store }

    private static func key(_ key: FleetKey, _ digest: ContentDigest) -> String { "\(key).\(digest)" }

    /// The number of chunks of a content. An empty one has none.
    package static func chunks(of size: UInt64) -> UInt64 {
        let (whole, rest) = size.quotientAndRemainder(dividingBy: UInt64(FleetStore.chunkSize))
        return rest == 0 ? whole : whole + 1
    }

    /// Stores a content. One chunk at a time is in memory.
    ///
    /// - Parameters:
    ///   - rewrites: whether to store it although it seems to be stored.
    ///   - read: returns the bytes of a range of the content.
    package func put(
        _ key: FleetKey, _ digest: ContentDigest, size: UInt64, rewrites: Bool,
        read: @Sendable (Range<UInt64>) async throws(FleetStoreError) -> [UInt8]
    ) async throws(FleetStoreError) {
        // After a lost answer, or by a fetcher that has replaced a record with the same content.
        if !rewrites, try await isComplete(key, digest, size: size) { return }
        for number in 0..<Self.chunks(of: size) {
            let start = number * UInt64(FleetStore.chunkSize)
            let bytes = try await read(start..<min(size, start + UInt64(FleetStore.chunkSize)))
            try await store.put(.body, "\(Self.key(key, digest)).\(number)", bytes)
        }
    }

    /// Whether the last chunk is stored: chunks are stored in their order.
    private func isComplete(
        _ key: FleetKey, _ digest: ContentDigest, size: UInt64
    ) async throws(FleetStoreError) -> Bool {
        let chunks = Self.chunks(of: size)
        guard chunks > 0 else { return true }
        for number in Set([0, chunks - 1]) {
            guard try await store.last(.body, "\(Self.key(key, digest)).\(number)") != nil else { return false }
        }
        return true
    }

    /// Reads a chunk of a content. A reader takes the chunks in their order, at its own pace, and verifies the digest of
    /// all bytes.
    package func chunk(
        _ number: UInt64, _ key: FleetKey, _ digest: ContentDigest, size: UInt64
    ) async throws(FleetStoreError) -> [UInt8] {
        guard let stored = try await store.last(.body, "\(Self.key(key, digest)).\(number)") else { throw .incomplete }
        let rest = size - min(size, number * UInt64(FleetStore.chunkSize))
        guard stored.message.payload.count == min(rest, UInt64(FleetStore.chunkSize)) else { throw .incomplete }
        return stored.message.payload
    }

    /// Removes the contents of a pipeline that no record names any more, also those of earlier fetchers.
    package func removeOthers(_ key: FleetKey, than digests: Set<ContentDigest>) async throws(FleetStoreError) {
        // Each content has a first chunk, and an empty one has none.
        for subject in try await store.subjects(.body, matching: "\(key).*.0") {
            let parts = subject.split(separator: ".")
            guard let digest = parts.dropLast().last.flatMap({ ContentDigest(hexadecimal: $0) }),
                !digests.contains(digest)
            else { continue }
            try await store.purge(.body, below: Self.key(key, digest))
        }
    }
}
