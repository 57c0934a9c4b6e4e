/// A stalled run: all its requests wait for permits or memory. Its deadline is paused, since other runs block it.
extension RefreshMachine {
    mutating func stalled(_ number: UInt64, _ isStalled: Bool, _ now: Instant) {
        guard var run, run.order.run == number, isStalled != (run.stalledSince != nil) else { return }
        if let since = run.stalledSince { run.deadline = run.deadline?.advanced(by: since.duration(to: now)) }
        run.stalledSince = isStalled ? now : nil
        self.run = run
    }
}

extension RefreshMachine.Run {
    /// When the deadline ends the run; nil: it has none, or is stalled.
    var dueEnd: RefreshMachine.Instant? { stalledSince == nil ? deadline : nil }
}
