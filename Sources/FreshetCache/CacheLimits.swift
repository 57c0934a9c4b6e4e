import Glibc

/// The limits of the cache's index and names.
package enum CacheLimits {
    /// Bytes of the name of a pipeline or file: NAME_MAX of the file systems of Linux.
    package static let nameBytes = 255
    /// Files of one pipeline that keeps several files.
    package static let filesPerSet = 100
    /// Former links of a pipeline that keeps several files, whose files may still exist.
    package static let formerLinks = 16
    /// Runs of each pipeline that the index keeps; older runs are deleted.
    package static let runsPerPipeline = 100
    /// Bytes of each text of a run (causes, error); a longer text is cut.
    package static let runTextBytes = 4096
    /// Records that wait for the next transaction; beyond that, a run waits for the disk.
    static let deferredRecords = 16_384
    /// The newest records that go on waiting while the index has no space.
    static let keptRecords = 8192
    /// Records that one transaction stores, so that the index's log stays small.
    static let recordsPerTransaction = 512
    /// Generations of each pipeline in the history, from the newest back; generations whose content is kept are always
    /// in the history.
    package static let historyPerPipeline: Int64 = 100
    /// How long rejected content is kept.
    package static let rejectedAge = Duration.seconds(7 * 86_400)
    /// URLs of one pipeline whose validators are kept (pages, branches); the oldest are deleted first.
    package static let validatorsPerPipeline = 1024
    /// Bytes of a URL and of each validator. A longer validator is not kept; then the next request is unconditional.
    package static let validatorBytes = 8192
    /// Entries of the requests that count against a pipeline's budget.
    package static let spentPerPipeline = 64
    /// Keys of the small state of one pipeline.
    package static let stateKeysPerPipeline = 64
    /// Bytes of a key of the small state.
    package static let stateKeyBytes = 64
    /// Bytes of a value of the small state.
    package static let stateValueBytes = 65_536
    /// Milliseconds to wait while another process (an administrator's `sqlite3`, a backup) holds the index.
    package static let indexBusyMilliseconds: Int32 = 5000
    /// An index of up to this many bytes is checked page by page at the start, which takes about a millisecond per MiB;
    /// damage in a larger index is found when the damaged page is read.
    package static let indexCheckBytes: Int64 = 8 << 20
    /// Bytes of a page of a new index.
    static let indexPageBytes: Int64 = 4096
    /// After as many pages, the index's log is written to its file: 1000, as SQLite does, but at most a sixteenth of a
    /// small file system. With 1000 pages the log alone would fill a file system of 4 MiB.
    static func indexLogPages(of path: String) -> Int64 {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return 1000 }
        let pages = UInt64(status.f_blocks).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue / 16
        return Int64(clamping: pages / UInt64(indexPageBytes)).clamped(to: 64...1000)
    }
    /// Damaged indexes that are kept in addition to the index.
    static let damagedIndexes = 3
    /// Findings of one examination of a part of the cache; further findings are only counted.
    package static let findings = 1000
    /// Bytes of the buffer that is used to compute the digest of a file.
    package static let copyBuffer = 128 << 10
}
