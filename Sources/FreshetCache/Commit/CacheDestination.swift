package import FreshetModel

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

    /// Whether the index keeps these validators: see ``CacheLimits/validatorBytes``.
    var isStorable: Bool {
        let bytes = [binding, validators.entityTag ?? "", validators.lastModified ?? ""].map(\.utf8.count).max() ?? 0
        return bytes <= CacheLimits.validatorBytes && !validators.isEmpty
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
