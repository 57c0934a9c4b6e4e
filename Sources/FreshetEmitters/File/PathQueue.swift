import FreshetEventLoop
import FreshetModel
import FreshetPipelines

/// The accesses of a ``PathPool`` that have not ended, and the decisions about them. It uses neither threads nor
/// timers.
struct PathQueue {
    struct Entry {
        var path: String
        var caller: PathPool.Caller
        /// When the caller requested the access.
        var since: BootInstant
        var access: @Sendable () -> Void
        var fail: @Sendable (RunFailure) -> Void
        /// The thread's work, and when it began; nil while the access waits for a thread.
        var running: (ticket: WorkerPool.Ticket, since: BootInstant)?
        /// Whether the caller was notified that the access takes long.
        var isNoticed = false
        /// Whether the caller has its result or was cancelled.
        var isLeft = false
    }

    struct Findings {
        /// Work that hangs and whose threads have to be replaced.
        var replaced: [WorkerPool.Ticket] = []
        /// Closures that make accesses fail; the caller of ``check(at:)`` calls them.
        var failed: [@Sendable () -> Void] = []
    }

    enum Timing {
        case unchanged, disarmed
        case armed(BootInstant)
    }

    private let limits: PathPool.Limits
    private var lastNumber: UInt64 = 0
    private var entries: [UInt64: Entry] = [:]
    /// The accesses of each pipeline, in order. The first has a thread or waits for a thread.
    private var lines: [UInt64: [UInt64]] = [:]
    private var hanging: Set<UInt64> = []
    private var armed: BootInstant?

    init(_ limits: PathPool.Limits) {
        self.limits = limits
    }

    var count: Int { entries.count }
    private var isFull: Bool { hanging.count >= limits.threads + limits.replacements }

    /// Returns whether the access may have a thread now.
    mutating func add(_ entry: Entry) -> (number: UInt64, starts: Bool) {
        lastNumber += 1
        guard !isFull else {
            entry.fail(failure(entry.path))
            return (lastNumber, false)
        }
        entries[lastNumber] = entry
        guard let pipeline = entry.caller.pipeline else { return (lastNumber, true) }
        lines[pipeline, default: []].append(lastNumber)
        return (lastNumber, lines[pipeline]?.count == 1)
    }

    /// Marks an access as running and returns it; nil if its caller was cancelled or has its result.
    mutating func begin(
        _ number: UInt64, _ ticket: WorkerPool.Ticket, at now: BootInstant
    ) -> (@Sendable () -> Void)? {
        guard let entry = entries[number], !entry.isLeft else { return nil }
        entries[number]?.running = (ticket, now)
        return entry.access
    }

    /// A thread has finished the access. Returns the next access of its pipeline, which may have a thread now.
    mutating func end(_ number: UInt64) -> UInt64? {
        hanging.remove(number)
        leave(number)
        guard let pipeline = entries.removeValue(forKey: number)?.caller.pipeline else { return nil }
        var line = lines[pipeline] ?? []
        line.removeAll { $0 == number }
        lines[pipeline] = line.isEmpty ? nil : line
        return line.first
    }

    /// The caller has its result or was cancelled.
    mutating func leave(_ number: UInt64) {
        guard let entry = entries[number], !entry.isLeft else { return }
        if entry.isNoticed { entry.caller.waits(entry.path, false) }
        entries[number]?.isLeft = true
        // An access that waits for another access of its pipeline has no thread that would remove it.
        guard entry.running == nil, let pipeline = entry.caller.pipeline, lines[pipeline]?.first != number else {
            return
        }
        lines[pipeline]?.removeAll { $0 == number }
        entries[number] = nil
    }

    mutating func check(at now: BootInstant) -> Findings {
        armed = nil
        var findings = Findings()
        for (number, entry) in entries {
            if !entry.isNoticed, !entry.isLeft, entry.since.duration(to: now) >= limits.notice {
                entries[number]?.isNoticed = true
                entry.caller.waits(entry.path, true)
            }
            guard let running = entry.running, !hanging.contains(number),
                running.since.duration(to: now) >= limits.abandonment
            else { continue }
            hanging.insert(number)
            if hanging.count <= limits.replacements { findings.replaced.append(running.ticket) }
        }
        guard isFull else { return findings }
        for entry in entries.values where entry.running == nil && !entry.isLeft {
            let failure = failure(entry.path)
            findings.failed.append { entry.fail(failure) }
        }
        return findings
    }

    /// When the next check is due, if that has changed. There is a minimum interval between checks, so that their cost
    /// per access is small.
    mutating func rearmed(at now: BootInstant) -> Timing {
        guard !entries.isEmpty else {
            defer { armed = nil }
            return armed == nil ? .unchanged : .disarmed
        }
        // Accesses that were added since the timer was armed are due later.
        guard armed == nil, let due = nextDue else { return .unchanged }
        let instant = max(due, now + limits.notice / 4)
        armed = instant
        return .armed(instant)
    }

    private var nextDue: BootInstant? {
        var next: BootInstant?
        for (number, entry) in entries {
            if !entry.isNoticed, !entry.isLeft {
                next = min(next ?? entry.since + limits.notice, entry.since + limits.notice)
            }
            if let running = entry.running, !hanging.contains(number) {
                next = min(next ?? running.since + limits.abandonment, running.since + limits.abandonment)
            }
        }
        return next
    }

    private func failure(_ path: String) -> RunFailure {
        RunFailure(
            .local,
            "could not read \(Text.escaped(path)): \(hanging.count) reads of files hang, because their file systems do "
                + "not answer"
        )
    }
}
