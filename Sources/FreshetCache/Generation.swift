package import FreshetModel

/// A committed snapshot: immutable, numbered per pipeline from 1.
package struct Generation: Hashable, Sendable {
    package var number: Int64
    package var digest: ContentDigest
    /// Bytes.
    package var size: Int64
    package var committedAt: WallTime
    /// The run that made the generation; nil if that is not known (the index was rebuilt).
    package var run: Int64?
    /// The absolute path of the published file.
    package var path: String
    /// The source had more content than was requested.
    package var truncated: Bool
    /// The origin is known to have other content, because this generation was rolled back to or is pinned.
    package var isBehind = false
    /// When the generation was pinned; nil if it is not pinned.
    package var pinnedAt: WallTime?
    /// Increases with each change of the pipeline's copy by this process: of two values of one pipeline, the value with
    /// the higher revision is newer. 0: the copy was only read.
    package var revision: UInt64 = 0
    /// Pipelines with several files: the absolute path of the link to their directory.
    package var directory: String?
    /// When the generation was withdrawn because it is too old; nil if readers find it.
    package var withdrawnAt: WallTime?
    /// When the file was written; after a rollback, the time of the rollback.
    package var writtenAt: WallTime?
    /// The expiry time that the content itself states; nil if it states none, or if that was not determined.
    package var contentExpires: WallTime?

    package init(
        number: Int64, digest: ContentDigest, size: Int64, committedAt: WallTime, run: Int64?, path: String,
        truncated: Bool = false, writtenAt: WallTime? = nil, contentExpires: WallTime? = nil
    ) {
        self.contentExpires = contentExpires
        self.writtenAt = writtenAt
        self.truncated = truncated
        self.number = number
        self.digest = digest
        self.size = size
        self.committedAt = committedAt
        self.run = run
        self.path = path
    }
}

/// Validators, and the request that they belong to.
package struct BoundValidators: Hashable, Sendable {
    /// What the validators depend on besides the content: the URL that was requested, and the checks and programs that
    /// made the content.
    package var binding: String
    package var validators: Validators

    package init(binding: String, _ validators: Validators) {
        self.binding = binding
        self.validators = validators
    }
}

/// The result of a commit.
package enum CommitOutcome: Hashable, Sendable {
    /// A new generation.
    case changed(Generation)
    /// The content is that of the current generation: no file was renamed.
    case unchanged(Generation)
    /// The content is that of the current generation, whose file was missing, damaged or had another name: the file was
    /// restored, and the generation keeps its number.
    case restored(Generation)
    /// The content differs from that of the current generation, which stays: it is pinned, or it was rolled back to and
    /// this is the content that the origin had then.
    ///
    /// - `isNew`: this content has not been declined before.
    case declined(Generation, isNew: Bool)

    /// The generation that is current now.
    package var generation: Generation {
        switch self {
        case .changed(let generation), .unchanged(let generation), .restored(let generation),
            .declined(let generation, _):
            generation
        }
    }
}

/// The destination of a candidate, and its limits.
package struct CacheDestination: Hashable, Sendable {
    package var pipeline: String
    /// The name below `current/`.
    package var file: String
    /// Permission bits of the file (0644; 0640 if the source has a credential; `cache.mode`).
    package var mode: UInt32
    /// The group that owns the file (`cache.group`); nil: the group is not changed.
    package var group: UInt32?
    /// The number of generations that are kept, including the current one; at least 1.
    package var keep: Int
    /// `check.min-bytes`. The default rejects empty content.
    package var minimumBytes: Int64
    /// `check.max-bytes`; writing more fails immediately.
    package var maximumBytes: Int64
    /// The content is several files as one JSON object, and `file` is the stamp next to the link to their directory:
    /// the name of the stamp ends with ``CacheLayout/stampSuffix``.
    package var isSet = false

    package init(
        pipeline: String, file: String, mode: UInt32 = 0o644, group: UInt32? = nil, keep: Int = 5,
        minimumBytes: Int64 = 1, maximumBytes: Int64 = .max
    ) {
        self.pipeline = pipeline
        self.file = file
        self.mode = mode
        self.group = group
        self.keep = max(1, keep)
        self.minimumBytes = minimumBytes
        self.maximumBytes = maximumBytes
    }
}

/// The state of a pipeline's attempts that is kept across restarts.
package struct RefreshState: Hashable, Sendable {
    /// When the last request was made, successful or not.
    package var lastAttempt: WallTime?
    /// When the origin last confirmed or delivered the content; nil also if that content no longer exists.
    package var lastSuccess: WallTime?
    /// The origin does not want requests before this time.
    package var retryAfter: WallTime?
    /// When the content of the last success stops being fresh, as its origin states; nil: not known. It is forgotten
    /// together with the last success.
    package var expires: WallTime?

    package init(
        lastAttempt: WallTime? = nil, lastSuccess: WallTime? = nil, retryAfter: WallTime? = nil,
        expires: WallTime? = nil
    ) {
        self.lastAttempt = lastAttempt
        self.lastSuccess = lastSuccess
        self.retryAfter = retryAfter
        self.expires = expires
    }

    /// Forgets the last success, because its content no longer exists.
    mutating func forgetSuccess() {
        lastSuccess = nil
        expires = nil
    }
}

/// The stored state of a pipeline, read in one step.
package struct StoredPipelineState: Hashable, Sendable {
    /// The current generation, published or withdrawn; nil if there is none, or if its file is missing or damaged.
    package var current: Generation?
    package var attempts: RefreshState
    /// The number of the newest run, 0 if there was none.
    package var lastRun: Int64
    /// The newest run; nil also if its outcome is not known.
    package var lastRunRecord: RunRecord?
    /// The small value of the requested key.
    package var value: [UInt8]?
    /// The requests that count against the budget.
    package var requests: [RequestBurst] = []
    /// The parameters that are set, by their names.
    package var parameters: [String: String] = [:]
    /// The parts whose pages can be continued.
    package var pages: [StoredPagesState] = []
    /// The rejected content.
    package var rejected: RejectedCandidate?
}

/// The space of a file system that must stay free: the smaller of a share and a number of bytes.
package struct FreeSpaceReserve: Hashable, Sendable {
    package var percent: UInt64
    package var bytes: UInt64

    /// 5 % or 256 MiB, whichever is less.
    package static let standard = FreeSpaceReserve(percent: 5, bytes: 256 << 20)
    package static let none = FreeSpaceReserve(percent: 0, bytes: 0)

    package init(percent: UInt64, bytes: UInt64) {
        self.percent = percent
        self.bytes = bytes
    }

    /// Bytes that must stay free on a file system of `total` bytes.
    func bytes(of total: UInt64) -> UInt64 { min(bytes, total / 100 * percent) }
}
