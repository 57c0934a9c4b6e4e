/// The proof of the network that a pipeline with a probe waits for before a run.
extension RefreshMachine {
    struct Proof: Hashable, Sendable {
        /// The epoch of the last proof, and until when it holds.
        var epoch: UInt64 = 0
        var until: Instant?
        /// What is asked for; nil: nothing.
        var wish: ProofRequest?
        /// Why the last attempt of those that are asked for failed.
        var refusal: String?
        /// When something happened last that may have changed the answer.
        var mayHaveChanged: Instant?

        /// It was asked for, and nothing has come of that yet.
        var isAwaited: Bool { wish != nil && refusal == nil }
    }

    /// Whether there is a proof, where one is needed. One that was good when the slot was asked for is good until the
    /// slot is there; then it is looked at once more.
    func isProven(at now: Instant) -> Bool {
        guard settings.policy.needsNetwork.probe != nil else { return true }
        guard let proof, let until = proof.until, proof.epoch >= network.state.epoch else { return false }
        return now < until || slotRequest != nil
    }

    /// An attempt that began before is not the last word.
    mutating func proofMayHaveChanged(at instant: Instant) {
        guard settings.policy.needsNetwork.probe != nil else { return }
        var proof = proof ?? Proof()
        proof.mayHaveChanged = max(instant, proof.mayHaveChanged ?? instant)
        self.proof = proof
    }

    /// Asks for a proof when nothing else is in the way, and takes that back when something is.
    mutating func seekProof(_ now: Instant) {
        let probe = settings.policy.needsNetwork.probe
        guard probe != nil || proof != nil else { return }
        var proof = proof ?? Proof()
        var wish: ProofRequest?
        if let probe, run == nil, slotRequest == nil, !isHeld, !isStopped,
            standing(at: now) == .unproven || moreStanding(at: now) == .unproven
        {
            wish = ProofRequest(probe, epoch: network.state.epoch, since: proof.mayHaveChanged)
        }
        guard wish != proof.wish else { return }
        // Whatever changed, what was said before is not the answer to it.
        proof.refusal = nil
        proof.wish = wish
        self.proof = proof
        actions.append(.prove(wish))
    }

    mutating func proofCame(_ verdict: ProofResult, _ now: Instant) {
        // Without a wish it was taken back while the verdict was under way.
        guard var proof, proof.wish != nil else { return }
        switch verdict {
        case .proven(let epoch, let until):
            proof.epoch = epoch
            proof.until = until
            proof.refusal = nil
            if epoch >= network.state.epoch { proof.wish = nil }
        case .refused(let sentence):
            proof.refusal = sentence
            // Routing says no as well: that was the attempt, and the next one takes its time.
            if !network.state.reachable { network.attemptedAnyway(at: now) }
            answerMore(.refused(.network(sentence)))
        }
        self.proof = proof
    }
}
