/// The proof of the network that a pipeline with a probe waits for before a run.
extension RefreshMachine {
    struct Proof: Hashable, Sendable {
        /// The epoch of the last proof; it holds until `until`.
        var epoch: UInt64 = 0
        var until: Instant?
        /// The pending request; nil: none.
        var request: ProofRequest?
        /// Why the last attempt for the pending request failed.
        var refusal: String?
        /// The last event that may have changed the answer.
        var mayHaveChanged: Instant?

        /// Whether a proof was requested and no attempt has ended yet.
        var isAwaited: Bool { request != nil && refusal == nil }
    }

    /// Whether there is a proof, or none is needed. A proof that was valid when the permit was requested is valid until
    /// the permit is granted; then it is evaluated again.
    func isProven(at now: Instant) -> Bool {
        guard settings.policy.needsNetwork.probe != nil else { return true }
        guard let proof, let until = proof.until, proof.epoch >= network.state.epoch else { return false }
        return now < until || permitRequest != nil
    }

    /// An event may have changed the answer: an attempt that began before is not decisive.
    mutating func proofMayHaveChanged(at instant: Instant) {
        guard settings.policy.needsNetwork.probe != nil else { return }
        var proof = proof ?? Proof()
        proof.mayHaveChanged = max(instant, proof.mayHaveChanged ?? instant)
        self.proof = proof
    }

    /// Requests a proof when nothing else prevents a run, and withdraws the request when something does.
    mutating func seekProof(_ now: Instant) {
        let probe = settings.policy.needsNetwork.probe
        guard probe != nil || proof != nil else { return }
        var proof = proof ?? Proof()
        var request: ProofRequest?
        if let probe, run == nil, permitRequest == nil, !isHeld, !isStopped,
            decision(at: now) == .unproven || loadMoreDecision(at: now) == .unproven
        {
            request = ProofRequest(probe, epoch: network.state.epoch, since: proof.mayHaveChanged)
        }
        guard request != proof.request else { return }
        // The earlier failure does not answer the new request.
        proof.refusal = nil
        proof.request = request
        self.proof = proof
        actions.append(.prove(request))
    }

    mutating func proofCame(_ result: ProofResult, _ now: Instant) {
        // The request was withdrawn while its result was on the way.
        guard var proof, proof.request != nil else { return }
        switch result {
        case .proven(let epoch, let until):
            proof.epoch = epoch
            proof.until = until
            proof.refusal = nil
            if epoch >= network.state.epoch { proof.request = nil }
        case .refused(let sentence):
            proof.refusal = sentence
            // Without a route this was the attempt of ``NetworkGate/attemptAnyway``; the next one comes after that
            // interval.
            if !network.state.reachable { network.attemptedAnyway(at: now) }
            answerMore(.refused(.network(sentence)))
        }
        self.proof = proof
    }
}
