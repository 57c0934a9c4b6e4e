/// A run whose requests all wait for places: others keep it from its work, and its deadline does not come nearer.
extension RefreshMachine {
    mutating func stalled(_ number: UInt64, _ isStalled: Bool, _ now: Instant) {
        guard var run, run.order.run == number, isStalled != (run.stalledSince != nil) else { return }
        if let since = run.stalledSince { run.deadline = run.deadline?.advanced(by: since.duration(to: now)) }
        run.stalledSince = isStalled ? now : nil
        self.run = run
    }
}

extension RefreshMachine.Run {
    /// When it is to be ended; nil: not as things are.
    var dueEnd: RefreshMachine.Instant? { stalledSince == nil ? deadline : nil }
}
