/// What bounds the cache's own bookkeeping.
package enum CacheLimits {
    /// Bytes of a pipeline's or a file's name: NAME_MAX of every file system that Linux knows.
    package static let nameBytes = 255
    /// Files of one pipeline that keeps several.
    package static let filesPerSet = 100
    /// Names of links that a pipeline of several files had before, and of which something may still be there.
    package static let formerLinks = 16
    /// Runs remembered for each pipeline; older ones are forgotten.
    package static let runsPerPipeline = 100
    /// Bytes of each text of a run (causes, error); longer ones are cut.
    package static let runTextBytes = 4096
    /// Numbers of generations that are remembered of each pipeline, from the newest back; those that are kept always are.
    package static let historyPerPipeline: Int64 = 100
    /// How long content that a check refused is kept aside.
    package static let refusedAge = Duration.seconds(7 * 86_400)
    /// URLs of one pipeline whose validators are remembered (pages, branches); the oldest go first.
    package static let validatorsPerPipeline = 1024
    /// Bytes of a URL and of each validator. A longer one is not kept: the next request is unconditional then.
    package static let validatorBytes = 8192
    /// Entries of what was spent of a pipeline's budget.
    package static let spentPerPipeline = 64
    /// Keys of one pipeline's small state.
    package static let stateKeysPerPipeline = 64
    /// Bytes of a key of the small state.
    package static let stateKeyBytes = 64
    /// Bytes of a value of the small state.
    package static let stateValueBytes = 65_536
    /// Milliseconds to wait while another process (an administrator's `sqlite3`, a backup) holds the index.
    package static let indexBusyMilliseconds: Int32 = 5000
    /// An index up to this many bytes is checked page by page at start, which takes about a millisecond per MiB; damage
    /// in a larger one is found when the damaged page is read.
    package static let indexCheckBytes: Int64 = 8 << 20
    /// Bytes of a page of a new index.
    static let indexPageBytes: Int64 = 4096
    /// Damaged indexes that are kept beside the index.
    static let damagedIndexes = 3
    /// What is found at one look at a part of the cache: more is counted only.
    package static let findings = 1000
    /// Bytes read at once when a file's digest is computed.
    package static let copyBuffer = 128 << 10
}
