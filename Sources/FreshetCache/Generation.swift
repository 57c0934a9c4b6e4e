/// A snapshot that was committed: immutable, numbered per pipeline from 1.
package struct Generation: Hashable, Sendable {
    package var number: Int64
    package var digest: ContentDigest
    /// Bytes.
    package var size: Int64
    package var committedAt: WallTime
    /// The run that made it; nil if that is not known (the index was rebuilt).
    package var run: Int64?
    /// The file that people read, by absolute path.
    package var path: String
    /// The source had more than was asked for.
    package var truncated: Bool
    /// The origin is known to have other content than this: it was rolled back to, or is pinned.
    package var isBehind = false
    /// Since when it is pinned; nil: it is not.
    package var pinnedAt: WallTime?
    /// Rises with each thing that this process did to the pipeline's copy: of two values that are told of one pipeline,
    /// the one with the higher turn is the newer. 0: it was only looked at.
    package var turn: UInt64 = 0
    /// Of several files: the link to the directory that has them, by absolute path.
    package var directory: String?
    /// Since when readers find nothing at its path, since it is too old; nil: they find it.
    package var withdrawnAt: WallTime?
    /// When its file was written: of one that was rolled back to, when that was.
    package var writtenAt: WallTime?
    /// When the content expires by what the content itself states; nil: it states nothing, or nobody looked.
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

/// What an origin said about one answer, for the next conditional request (RFC 9110, section 8.8).
package struct Validators: Hashable, Sendable {
    /// The URL that was asked, before redirects.
    package var url: String
    /// The ETag field as it came, quotes and `W/` included.
    package var entityTag: String?
    /// The Last-Modified field as it came.
    package var lastModified: String?

    package init(url: String, entityTag: String?, lastModified: String?) {
        self.url = url
        self.entityTag = entityTag
        self.lastModified = lastModified
    }
}

/// What became of a candidate.
package enum CommitOutcome: Hashable, Sendable {
    /// A new generation.
    case changed(Generation)
    /// The content is that of the current generation: nothing was renamed.
    case unchanged(Generation)
    /// The content is that of the current generation, whose file was gone, damaged or had another name: it was put
    /// into place, and the generation keeps its number.
    case restored(Generation)
    /// The content is other than that of the current generation, which stays: it is pinned, or was rolled back to and this
    /// is what the origin had then.
    ///
    /// - `isNews`: this content has not been declined before.
    case declined(Generation, isNews: Bool)

    /// The generation that is current now.
    package var generation: Generation {
        switch self {
        case .changed(let generation), .unchanged(let generation), .restored(let generation),
            .declined(let generation, _):
            generation
        }
    }
}

/// Where a candidate shall go and what it must fulfil.
package struct CacheDestination: Hashable, Sendable {
    package var pipeline: String
    /// The name below `current/`.
    package var file: String
    /// Permission bits of the file (0644; 0640 if the source has a credential; `cache.mode`).
    package var mode: UInt32
    /// The group that shall own the file (`cache.group`); nil leaves it as it is made.
    package var group: UInt32?
    /// Generations kept, the current one included; at least 1.
    package var keep: Int
    /// `check.min-bytes`. The default refuses empty content.
    package var minimumBytes: Int64
    /// `check.max-bytes`; writing more fails at once.
    package var maximumBytes: Int64
    /// The content is several files as one JSON object, and `file` the stamp beside the link to their directory: its name
    /// ends with ``CacheLayout/stampSuffix``.
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

/// What a pipeline must remember of its attempts across restarts.
package struct RefreshState: Hashable, Sendable {
    /// When the origin was last asked, whatever came of it.
    package var lastAttempt: WallTime?
    /// When it last confirmed or delivered the content; nil also if that content is gone since.
    package var lastSuccess: WallTime?
    /// The origin wants to be left alone until then.
    package var retryAfter: WallTime?
    /// When the content of the last success stops being fresh by its origin's word; nil: not known. It goes with it.
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

    /// The content that it is about has gone.
    mutating func forgetSuccess() {
        lastSuccess = nil
        expires = nil
    }
}

/// What is remembered of a pipeline, at one look.
package struct StoredPipelineState: Hashable, Sendable {
    /// What it offers now, or has withdrawn; nil if it has nothing, or if that is gone or damaged.
    package var current: Generation?
    package var attempts: RefreshState
    /// The number of its newest run, 0 if it had none.
    package var lastRun: Int64
    /// That run; nil also if nobody knows what came of it.
    package var lastRunRecord: RunRecord?
    /// The small value that was asked for.
    package var value: [UInt8]?
    /// What was spent of its budget of requests.
    package var requests: [RequestBurst] = []
    /// What is set of its parameters, by their names.
    package var parameters: [String: String] = [:]
    /// Its parts whose pages may be continued.
    package var pages: [PartPagesState] = []
    /// What a check refused last, kept aside.
    package var refused: RejectedCandidate?
}

/// Requests that were made close together.
package struct RequestBurst: Hashable, Sendable {
    package var first: WallTime
    package var last: WallTime
    package var count: Int64

    package init(first: WallTime, last: WallTime, count: Int64) {
        self.first = first
        self.last = last
        self.count = count
    }
}

/// One run, as it is remembered.
package struct RunRecord: Hashable, Sendable {
    package enum Outcome: String, Sendable, CaseIterable {
        case changed, unchanged, failed, superseded, cancelled
    }

    /// Numbered per pipeline from 1.
    package var number: Int64
    package var pipeline: String
    /// The causes, as text for people.
    package var causes: String
    package var started: WallTime
    package var finished: WallTime
    package var outcome: Outcome
    /// One sentence, for `failed`.
    package var error: String?
    /// The generation that was current when it ended.
    package var generation: Int64?

    package init(
        number: Int64, pipeline: String, causes: String, started: WallTime, finished: WallTime, outcome: Outcome,
        error: String? = nil, generation: Int64? = nil
    ) {
        self.number = number
        self.pipeline = pipeline
        self.causes = causes
        self.started = started
        self.finished = finished
        self.outcome = outcome
        self.error = error
        self.generation = generation
    }
}

/// How much of the file system must stay free: the smaller of a share and a number of bytes.
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
