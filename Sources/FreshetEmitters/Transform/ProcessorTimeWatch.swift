import FreshetEventLoop

/// Watches how much processor time a helper uses for a request.
///
/// `@unchecked Sendable`: all calls, the timer's included, are made on the loop's thread.
final class ProcessorTimeWatch: @unchecked Sendable {
    private let helper: HelperProcess
    private let began: Duration
    private let ends: @Sendable () -> Void
    private let loop: EventLoop
    private var timer: LoopTimer?
    private var slice: Duration?
    private(set) var isEvicted = false

    /// - Parameter ends: called when the request has used up its time slice.
    init(_ helper: HelperProcess, _ loop: EventLoop, ends: @escaping @Sendable () -> Void) {
        self.helper = helper
        self.loop = loop
        self.ends = ends
        began = helper.processorTime
    }

    /// The processor time of the request.
    var used: Duration { helper.processorTime - began }

    /// Sets the processor time that the request may use in total; nil: without a limit.
    func allow(_ slice: Duration?) {
        self.slice = slice
        check()
    }

    /// Ends the helper, because other requests need its permit.
    func evict() {
        isEvicted = true
        timer = nil
        helper.assumeIsolated { $0.kill() }
    }

    /// Checks the used processor time, and arms the timer for the rest of the slice. A helper has one thread, so its
    /// processor time grows at most as fast as time passes.
    private func check() {
        guard let slice else { return timer = nil }
        let rest = slice - used
        guard rest > .zero else {
            timer = nil
            return ends()
        }
        let timer = timer ?? LoopTimer(loop, named: "jq time slice") { [weak self] in self?.check() }
        self.timer = timer
        timer.arm(at: .now + max(rest, Self.resolution))
    }

    private static let resolution = Duration.milliseconds(10)
}
