package import FreshetModel
import FreshetNATS
import Synchronization

/// The contents of a fleet: each in chunks, by pipeline and digest. A content is stored before its record, and is
/// removed after a later record has replaced it.
package struct FleetBodies: Sendable {
    private let store: FleetStore
    /// The mirror of the site, which is asked first; nil: there is none.
    private let mirror: FleetStore?
    private let suspects = SuspectContents()

    /// - Parameter mirror: a mirror at the member's site.
    package init(_ store: FleetStore, mirror: FleetStore? = nil) {
        self.store = store
        self.mirror = mirror
    }

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

    /// Reads a content. The reader verifies the digest of all bytes.
    package func reader(_ key: FleetKey, _ digest: ContentDigest, size: UInt64) -> Reader {
        Reader(
            store: store, mirror: suspects.contains(digest) ? nil : mirror, suspects: suspects, digest: digest,
            key: Self.key(key, digest), size: size)
    }

    /// Reads the chunks of one content in their order, at the pace of its user.
    package struct Reader {
        fileprivate let store: FleetStore
        /// The mirror of the site; nil: it does not have this content.
        fileprivate var mirror: FleetStore?
        fileprivate let suspects: SuspectContents
        fileprivate let digest: ContentDigest
        fileprivate let key: String
        fileprivate let size: UInt64
        fileprivate var number: UInt64 = 0
        fileprivate var usedMirror = false

        /// The next bytes; nil: there are no more.
        package mutating func next() async throws(FleetStoreError) -> [UInt8]? {
            guard number < FleetBodies.chunks(of: size) else { return nil }
            defer { number += 1 }
            if let mirror {
                // If the mirror lacks one chunk, it has forgotten the content or does not have the rest of it yet.
                if let bytes = try? await chunk(mirror) {
                    usedMirror = true
                    return bytes
                }
                self.mirror = nil
            }
            return try await chunk(store)
        }

        private func chunk(_ store: FleetStore) async throws(FleetStoreError) -> [UInt8] {
            guard let stored = try await store.last(.body, "\(key).\(number)") else { throw .incomplete }
            let rest = size - min(size, number * UInt64(FleetStore.chunkSize))
            guard stored.message.payload.count == min(rest, UInt64(FleetStore.chunkSize)) else { throw .incomplete }
            return stored.message.payload
        }

        /// The bytes do not have the digest. Returns whether the mirror may be the cause: then the next reader of this
        /// content does not ask it.
        package func isDamaged() -> Bool {
            if usedMirror { suspects.add(digest) }
            return usedMirror
        }
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

/// The contents that a mirror returned with other bytes than their digest says: the last of them.
private final class SuspectContents: Sendable {
    private static let most = 64
    private let digests = Mutex<[ContentDigest]>([])

    func contains(_ digest: ContentDigest) -> Bool { digests.withLock { $0.contains(digest) } }

    func add(_ digest: ContentDigest) {
        digests.withLock { digests in
            guard !digests.contains(digest) else { return }
            if digests.count == Self.most { digests.removeFirst() }
            digests.append(digest)
        }
    }
}
