/// Asks for the proof that the network leads to where it should.
///
/// Cancelling the task ends the request: when `probe` has thrown, its socket is closed.
package protocol Probing: Sendable {
    /// Asks once, on a connection of its own in this network epoch, and sends nothing but what the probe says. It may
    /// take as long as it likes: who calls it has a deadline.
    ///
    /// Returns if the answer is what the probe wants; else its failure says in a sentence what came instead. A failure
    /// to resolve or connect is of the kind `connection`.
    func probe(_ probe: NetworkProbe, epoch: UInt64) async throws(FetchError)
}
