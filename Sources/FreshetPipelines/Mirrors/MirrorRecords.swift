import FreshetModel
internal import FreshetSignals

/// What a pipeline knows about its mirrors, shared by its runs, from any thread.
final class MirrorRecords: Sendable {
    private let machine = Lock(MirrorMachine())

    init() {}

    func plan(
        _ mirrors: Mirrors, share: Double, epoch: UInt64, isForced: Bool, at now: BootInstant
    ) -> [Int] {
        machine.withLock { $0.plan(mirrors, share: share, epoch: epoch, isForced: isForced, at: now) }
    }

    func wait(_ mirrors: Mirrors, at now: BootInstant) -> Duration? {
        machine.withLock { $0.wait(mirrors, at: now) }
    }

    func asks(_ url: String) { machine.withLock { $0.asks(url) } }

    func answered() { machine.withLock { $0.answered() } }

    func ranLate(at now: BootInstant) { machine.withLock { $0.ranLate(at: now) } }

    func worked(_ url: String, after time: Duration?, at now: BootInstant) {
        machine.withLock { $0.worked(url, after: time, at: now) }
    }

    func failed(_ url: String, retryAfter: Duration?, at now: BootInstant) {
        machine.withLock { $0.failed(url, retryAfter: retryAfter, at: now) }
    }
}
