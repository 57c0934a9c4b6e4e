import FreshetModel

/// The proof of the network that a pipeline with a probe waits for before a run.
struct NetworkProof: Hashable, Sendable {
    typealias Instant = BootInstant

    /// The network epoch of the last proof; the proof holds until `until`.
    private var epoch: UInt64 = 0
    private var until: Instant?
    /// The pending request; nil: none.
    private(set) var request: ProofRequest?
    /// Why the last attempt for the pending request failed.
    private(set) var refusal: String?
    /// The last event that may have changed the answer.
    private(set) var mayHaveChanged: Instant?

    /// Whether a proof was requested and no attempt has ended yet.
    var isAwaited: Bool { request != nil && refusal == nil }

    /// Whether there is a proof.
    ///
    /// - Parameter isStarting: a permit was requested. A proof that was valid then is valid until the permit is granted;
    ///   then it is evaluated again.
    func holds(in epoch: UInt64, isStarting: Bool, at now: Instant) -> Bool {
        guard let until, self.epoch >= epoch else { return false }
        return now < until || isStarting
    }

    /// An event may have changed the answer: an attempt that began before is not decisive.
    mutating func mayHaveChanged(at instant: Instant) {
        mayHaveChanged = max(instant, mayHaveChanged ?? instant)
    }

    /// Another probe is configured.
    mutating func expire() { until = nil }

    /// Requests a proof, or withdraws the request.
    ///
    /// - Returns: whether that is a change.
    mutating func seek(_ new: ProofRequest?) -> Bool {
        guard new != request else { return false }
        // The earlier failure does not answer the new request.
        refusal = nil
        request = new
        return true
    }

    /// The result of an attempt.
    ///
    /// - Parameter current: the current network epoch; a proof of an earlier one does not end the request.
    /// - Returns: whether the request was refused; false too if it was withdrawn while its result was on the way.
    mutating func received(_ result: ProofResult, current: UInt64) -> Bool {
        guard request != nil else { return false }
        switch result {
        case .proven(let epoch, let until):
            self.epoch = epoch
            self.until = until
            refusal = nil
            if epoch >= current { request = nil }
            return false
        case .refused(let sentence):
            refusal = sentence
            return true
        }
    }
}
