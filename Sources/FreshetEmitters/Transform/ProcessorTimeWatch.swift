import FreshetEventLoop

/// Watches how much processor time a helper uses for a request. It belongs to the loop's thread.
///
/// `@unchecked Sendable`: all calls, the timer's included, are made on the loop's thread.
final class ProcessorTimeWatch: @unchecked Sendable {
    private let helper: HelperProcess
    private let began: Duration
    private let ends: @Sendable () -> Void
    private let loop: EventLoop
    private var timer: LoopTimer?
    private var turn: Duration?
    private(set) var isEvicted = false

    /// - Parameter ends: is called when the request has used up its turn.
    init(_ helper: HelperProcess, _ loop: EventLoop, ends: @escaping @Sendable () -> Void) {
        self.helper = helper
        self.loop = loop
        self.ends = ends
        began = helper.processorTime
    }

    /// The processor time of the request.
    var used: Duration { helper.processorTime - began }

    /// The request may use so much in all; nil: as much as it likes.
    func allow(_ turn: Duration?) {
        self.turn = turn
        look()
    }

    /// Ends the helper, since others need its place.
    func evict() {
        isEvicted = true
        timer = nil
        helper.assumeIsolated { $0.kill() }
    }

    /// A process uses no more processor time than time goes by, having one thread.
    private func look() {
        guard let turn else { return timer = nil }
        let rest = turn - used
        guard rest > .zero else {
            timer = nil
            return ends()
        }
        let timer = timer ?? LoopTimer(loop, named: "jq turns") { [weak self] in self?.look() }
        self.timer = timer
        timer.arm(at: .now + max(rest, Self.resolution))
    }

    private static let resolution = Duration.milliseconds(10)
}
