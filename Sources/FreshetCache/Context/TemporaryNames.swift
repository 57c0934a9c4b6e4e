import Synchronization

/// The temporary names that this process uses, and the bytes written to each.
///
/// Safe to call from any thread.
final class TemporaryNames: Sendable {
    private let last = Atomic<UInt64>(0)
    private let inUse = Mutex<[UInt64: Int64]>([:])

    /// Makes a token for a temporary name, which is unique until it is released.
    func make() -> UInt64 {
        let token = last.wrappingAdd(1, ordering: .relaxed).newValue
        inUse.withLock { $0[token] = 0 }
        return token
    }

    func release(_ token: UInt64) { inUse.withLock { $0[token] = nil } }

    /// Makes all later tokens higher than this one, because its name is in use.
    func skip(_ token: UInt64) {
        _ = last.max(token, ordering: .relaxed)
    }

    /// Sets the number of bytes of a temporary file. It is 0 for a file that also has the name of a generation: the
    /// index counts those bytes.
    func setSize(_ token: UInt64, _ bytes: Int64) { inUse.withLock { if $0[token] != nil { $0[token] = bytes } } }

    /// The bytes of all content that is being written.
    var unfinishedBytes: Int64 { inUse.withLock { $0.values.reduce(0, +) } }

    /// Whether a temporary name is in use.
    func isInUse(_ name: String) -> Bool {
        CacheLayout.token(of: name).map { token in inUse.withLock { $0[token] != nil } } ?? false
    }
}
