/// Makes the request that proves that the network reaches the internet.
///
/// If the task is cancelled, the request ends: when `probe` has thrown, its socket is closed.
package protocol Probing: Sendable {
    /// Makes one request, on a new connection in this network epoch, and sends nothing but the request. It has no time
    /// limit; the caller has a deadline.
    ///
    /// It returns if the answer is the expected one; otherwise it throws a failure that describes the answer. A failure
    /// to resolve or connect is of the kind `connection`.
    func probe(_ probe: NetworkProbe, epoch: UInt64) async throws(FetchError)
}
