/// The current generation of a pipeline, published or withdrawn. Its content is immutable.
package struct CurrentGeneration: Hashable, Sendable {
    /// The number within the pipeline, from 1.
    package var number: UInt64
    /// The size in bytes.
    package var size: UInt64
    package var digest: ContentDigest
    package var committedAt: WallTime
    /// The path of the published file.
    package var path: String {
        get { location.path }
        set { location = PublishedLocation(newValue) }
    }
    /// Whether the limit on pages truncated the content.
    package var truncated: Bool
    /// The run that made it; nil: not known, since the index was rebuilt.
    package var run: Int64?
    /// Whether the source is known to have other content, which is held back: the copy was rolled back to, or is
    /// pinned.
    package var isBehind = false
    /// Since when it is pinned; nil: it is not pinned.
    package var pinnedSince: WallTime? {
        get { rare.pinnedSince }
        set { rare.pinnedSince = newValue }
    }
    /// Orders the states of one pipeline's copy within this process: a state with a higher revision is newer. 0: the
    /// copy was only read.
    package var revision: UInt64 = 0
    /// With several files: the link to their directory.
    package var directory: String? {
        get { rare.directory }
        set { rare.directory = newValue }
    }
    /// Since when it is withdrawn from readers; nil: it is not withdrawn.
    package var withdrawnSince: WallTime? {
        get { rare.withdrawnSince }
        set { rare.withdrawnSince = newValue }
    }
    /// When its file was written; after a rollback, the time of the rollback.
    package var writtenAt: WallTime?
    /// When the content expires by what the content itself states; nil: it states nothing, or that is not known.
    package var contentExpires: WallTime? {
        get { rare.contentExpires }
        set { rare.contentExpires = newValue }
    }
    /// The trusted comment of its verified signature; nil: none is known.
    package var comment: String? {
        get { rare.comment }
        set { rare.comment = newValue }
    }

    /// What most generations do not have. Each idle pipeline keeps a generation, so it takes one word there; nil if
    /// all of it is absent, so that equal generations are equal.
    @Rarely private var rare = Rare()

    private var location: PublishedLocation

    private struct Rare: RareValues {
        var pinnedSince: WallTime?
        var directory: String?
        var withdrawnSince: WallTime?
        var contentExpires: WallTime?
        var comment: String?
    }

    package init(
        number: UInt64, size: UInt64, digest: ContentDigest, committedAt: WallTime, path: String,
        truncated: Bool = false
    ) {
        self.init(
            number: number, size: size, digest: digest, committedAt: committedAt, location: PublishedLocation(path),
            truncated: truncated)
    }

    package init(
        number: UInt64, size: UInt64, digest: ContentDigest, committedAt: WallTime, location: PublishedLocation,
        truncated: Bool = false
    ) {
        self.truncated = truncated
        self.number = number
        self.size = size
        self.digest = digest
        self.committedAt = committedAt
        self.location = location
    }

    /// Allows the generation to be replaced again.
    package mutating func release() {
        isBehind = false
        pinnedSince = nil
    }

    package var identity: GenerationIdentity {
        GenerationIdentity(number: number, digest: digest, isWithdrawn: withdrawnSince != nil)
    }
}

/// The path of a published file as its directory and its name: the files of all pipelines are in one directory, so all
/// pipelines share its text.
package struct PublishedLocation: Hashable, Sendable {
    /// With the `/` at its end; empty if there is none.
    private let directory: String
    private let name: String

    package init(_ path: String) {
        let name = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[path.utf8.index(after: $0)...] } ?? path[...]
        self.name = String(name)
        directory = String(path[..<name.startIndex])
    }

    /// - Parameters:
    ///   - directory: ends with `/`.
    ///   - name: has no `/`.
    package init(directory: String, name: String) {
        self.directory = directory
        self.name = name
    }

    package var path: String { directory + name }
}

/// Identifies what readers see: a generation, or that the copy is withdrawn. The number alone does not identify a
/// generation, since an index that was created again starts with 1.
package struct GenerationIdentity: Hashable, Sendable {
    package var number: UInt64
    package var digest: ContentDigest
    /// The copy is withdrawn: readers find no file.
    package var isWithdrawn: Bool

    package init(number: UInt64, digest: ContentDigest, isWithdrawn: Bool = false) {
        self.isWithdrawn = isWithdrawn
        self.number = number
        self.digest = digest
    }
}

/// The result of a commit.
package enum CommitOutcome: Hashable, Sendable {
    /// A new generation.
    case changed(CurrentGeneration)
    /// The content is that of the current generation: no file was renamed.
    case unchanged(CurrentGeneration)
    /// The content is that of the current generation, whose file was missing, damaged or had another name: the file was
    /// restored, and the generation keeps its number.
    case restored(CurrentGeneration)
    /// The content differs from that of the current generation, which stays: it is pinned, or it was rolled back to and
    /// this is the content that the origin had then.
    ///
    /// - `isNew`: this content has not been declined before.
    case declined(CurrentGeneration, isNew: Bool)

    /// The generation that is current now.
    package var generation: CurrentGeneration {
        switch self {
        case .changed(let generation), .unchanged(let generation), .restored(let generation),
            .declined(let generation, _):
            generation
        }
    }

    /// Whether there is a new generation.
    package var isChange: Bool { if case .changed = self { true } else { false } }
}
