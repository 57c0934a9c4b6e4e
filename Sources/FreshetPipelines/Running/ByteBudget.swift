internal import FreshetSignals

/// A limit on the total size of several values.
final class ByteBudget: Sendable {
    private let limit: UInt64
    private let what: String
    private let taken = Lock<UInt64>(0)

    /// - Parameter what: the beginning of an error message.
    init(_ limit: UInt64, of what: String) {
        self.limit = limit
        self.what = what
    }

    func take(_ bytes: Int) throws(FetchError) {
        let all = taken.withLock { taken in
            taken += UInt64(bytes)
            return taken
        }
        guard all > limit else { return }
        throw .failed(
            RunFailure(.content, "\(what) more bytes than check.max-bytes allows (\(limit))"))
    }
}
