package import FreshetEventLoop
package import FreshetJQ
package import FreshetPipelines
import Glibc

/// The engine's ``Transforming`` made real: jq programs in helper processes.
///
/// A few helpers run, each serving one request at a time; others wait, and ``HelperPool`` says who is next. A helper stays
/// warm for five seconds, and with it the programs that it has compiled. Cancelling a request kills its helper and no
/// other.
///
/// jq 1.6 reads numbers as IEEE doubles: integers beyond 2^53 lose their last digits (``FreshetJQ/JQHelper``).
package actor JQTransformer: JQEvaluating {
    private enum Turn {
        case proceed(HelperProcess?, turn: Duration?)
        case cancelled
    }

    private let loop: EventLoop
    private let workers: WorkerPool
    private let helper: ChildProcess.Command
    /// Nil: a helper has ``FreshetJQ/JQHelper/memoryLimit``, whatever others have.
    private let memory: MemoryBudget?
    package nonisolated let maxOutput: UInt64
    /// Called once, and then gone.
    private var reportGaps: (@Sendable (HelperSandbox.Gaps) -> Void)?

    private var pool: HelperPool<HelperProcess>
    private var waiters: [UInt64: CheckedContinuation<Turn, Never>] = [:]
    private var lastTicket: UInt64 = 0
    private var working: [UInt64: ProcessorTimeWatch] = [:]
    private var coolTimer: LoopTimer?
    /// Killed, and kept until the kernel has said so.
    private var ending: [HelperProcess] = []

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - helper: how to start a program that becomes a helper: this one, called again.
    ///   - maxOutput: the most bytes that a program may put out.
    ///   - memory: what all requests together may take.
    ///   - warmth: how long a helper without work is kept.
    ///   - gaps: is called on the loop's thread when the sandbox of a helper lacks something, the first time only.
    package init(
        _ loop: EventLoop, workers: WorkerPool, helper: ChildProcess.Command = JQTransformer.thisProgram,
        maxOutput: UInt64 = CheckRules.defaultMaxBytes, memory: MemoryBudget? = nil, warmth: Duration = .seconds(5),
        gaps: (@Sendable (HelperSandbox.Gaps) -> Void)? = nil
    ) {
        // All levels together: the number of processors, and three at least.
        pool = HelperPool(places: Self.places, warmth: warmth)
        self.loop = loop
        self.workers = workers
        self.helper = helper
        self.memory = memory
        self.maxOutput = maxOutput
        reportGaps = gaps
    }

    private static var places: Int { (sysconf(Int32(_SC_NPROCESSORS_ONLN)) + 2) / 3 }

    /// What is left of a limit on memory for answers that are long, when each helper may work on a small one: at least half
    /// of it.
    package static func memoryForLongAnswers(of limit: UInt64) -> UInt64 {
        let helpers = UInt64(max(1, places) * HelperPool<HelperProcess>.turns.count)
        return limit - min(limit / 2, helpers * MemoryShare.small.total)
    }

    /// This program as a helper: the very file that runs, also when an upgrade has put another in its place.
    package static var thisProgram: ChildProcess.Command { program("/proc/self/exe") }

    /// A program that understands ``JQHelper/argument`` as a helper.
    package static func program(_ path: String) -> ChildProcess.Command {
        ChildProcess.Command(path: path, arguments: [JQHelper.argument], environment: JQHelper.environment)
    }

    package nonisolated func share(of pipeline: UInt64) -> any Transforming {
        JQClient(transformer: self, pipeline: pipeline)
    }

    /// Of no pipeline, or of all.
    package func exchange(_ request: JQRequest) async throws(FetchError) -> JQReply {
        try await exchange(request, of: 0)
    }

    // MARK: For tests

    var idleHelpers: Int { pool.warm.count }
    var warmIdentifiers: [Int32] { pool.warm.map(\.helper.identifier) }
    /// Requests that a helper works on.
    var runningHelpers: Int { working.count }
    var waitingRequests: Int { waiters.count }
    /// Helpers that were ended and are not known to be gone.
    var endingHelpers: Int { ending.count { $0.result == nil } }

    // MARK: One request

    /// - Parameter reserved: the memory for it; nil: it reserves what it needs.
    func exchange(
        _ request: JQRequest, of pipeline: UInt64, using reserved: MemoryReservation? = nil
    ) async throws(FetchError) -> JQReply {
        guard !Task.isCancelled else { throw .cancelled }
        if let failure = Self.excess(of: request) { throw .failed(failure) }
        guard let memory else { return try await exchange(request, of: pipeline, in: .unlimited) }
        if let reserved { return try await exchange(request, of: pipeline, in: HelperMemory(reserved)) }
        if request.input.count <= MemoryShare.smallInput {
            do throws(FetchError) {
                return try await exchange(request, of: pipeline, in: .small)
            } catch {
                guard error.lacksMemory else { throw error }
            }
        }
        do throws(FetchError) {
            return try await exchange(request, of: pipeline, .usual, of: memory)
        } catch {
            guard error.lacksMemory else { throw error }
        }
        return try await exchange(request, of: pipeline, .all, of: memory)
    }

    private func exchange(
        _ request: JQRequest, of pipeline: UInt64, _ level: MemoryShare.Level, of memory: MemoryBudget
    ) async throws(FetchError) -> JQReply {
        let reservation = try await memory.reserve(for: request.input.count, level)
        defer { reservation.release() }
        return try await exchange(request, of: pipeline, in: HelperMemory(reservation))
    }

    private func exchange(
        _ request: JQRequest, of pipeline: UInt64, in memory: HelperMemory
    ) async throws(FetchError) -> JQReply {
        let request = memory.bounded(request)
        lastTicket += 1
        let ticket = lastTicket
        var turn = await waitForTurn(of: ticket) { $0.enter(ticket, of: pipeline) }
        while case .proceed(let warm, let limit) = turn {
            guard let reply = try await work(on: request, as: ticket, warm, turn: limit, in: memory) else {
                // Begun again with a longer turn, when there is one.
                turn = await waitForTurn(of: ticket) { $0.evicted(ticket) }
                continue
            }
            if reply.status == .outputTooLarge, let failure = memory.excess(of: request, maxOutput) {
                throw .failed(failure)
            }
            return reply
        }
        throw .cancelled
    }

    private static func excess(of request: JQRequest) -> RunFailure? {
        if request.program.utf8.count > JQRequest.maxProgram {
            return TransformFailure.tooLong("the jq program", JQRequest.maxProgram)
        }
        if request.variables.count > JQRequest.maxVariables {
            return TransformFailure.tooLong("the variables of the jq program", JQRequest.maxVariables)
        }
        if request.input.count > JQRequest.maxInput {
            return TransformFailure.tooLong(request.nameOfInput, JQRequest.maxInput)
        }
        return nil
    }

    /// Has a helper work on a request. Nil: others needed its place before it was done.
    private func work(
        on request: JQRequest, as ticket: UInt64, _ warm: HelperProcess?, turn: Duration?, in memory: HelperMemory
    ) async throws(FetchError) -> JQReply? {
        let helper: HelperProcess
        do throws(SystemCallError) {
            helper = try await usable(warm, memory)
        } catch {
            perform(pool.leave(ticket, nil, used: nil, at: .now))
            throw .failed(RunFailure(.local, "could not start the jq helper: \(error)"))
        }
        let watch = ProcessorTimeWatch(helper, loop) { [weak self] in
            self?.assumeIsolated { $0.perform($0.pool.turnEnds(ticket)) }
        }
        working[ticket] = watch
        watch.allow(turn)
        let reply = await helper.exchange(request)
        working[ticket] = nil
        // A cancelled task has killed its helper, perhaps a moment after the reply: nobody else must get it.
        guard let reply, reply.status != .notConfined, !watch.isEvicted, !Task.isCancelled else {
            let exit = await helper.end()
            if watch.isEvicted, !Task.isCancelled { return nil }
            perform(pool.leave(ticket, nil, used: nil, at: .now))
            guard !Task.isCancelled else { throw .cancelled }
            throw .failed(
                reply.flatMap { TransformFailure.of($0, to: request) } ?? memory.failure(exit, at: request))
        }
        let used = watch.used
        // What it took for this it would keep for others.
        if !memory.isKept { await helper.end() }
        perform(pool.leave(ticket, memory.isKept ? helper : nil, used: used, at: .now))
        if !reply.gaps.isEmpty { reportGaps.take()?(reply.gaps) }
        return reply
    }

    /// A warm helper if it is still alive, else a new one.
    private func usable(
        _ warm: HelperProcess?, _ memory: HelperMemory
    ) async throws(SystemCallError) -> HelperProcess {
        var usable: HelperProcess?
        if let warm {
            if await warm.isUsable { usable = warm } else { await warm.end() }
        }
        let helper: HelperProcess
        if let usable {
            helper = usable
        } else {
            helper = try await HelperProcess.start(loop, workers: workers, self.helper)
        }
        guard let limit = memory.limit else { return helper }
        do throws(SystemCallError) {
            try helper.limit(memory: limit)
        } catch {
            await helper.end()
            throw error
        }
        return helper
    }

    /// Waits for one's turn.
    ///
    /// - Parameter event: after which there may be one at once.
    private func waitForTurn(
        of ticket: UInt64, after event: (inout HelperPool<HelperProcess>) -> [HelperPool<HelperProcess>.Action]
    ) async -> Turn {
        // A task may be cancelled on any thread; the timer is the way to this one.
        let hop = LoopTimer(loop) { [weak self] in
            self?.assumeIsolated { $0.abandon(ticket) }
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation {
                waiters[ticket] = $0
                perform(event(&pool))
            }
        } onCancel: {
            hop.arm(at: .now)
        }
    }

    private func abandon(_ ticket: UInt64) {
        // One that has been started finds out by itself that it is cancelled.
        guard pool.abandon(ticket) else { return }
        waiters.removeValue(forKey: ticket)?.resume(returning: .cancelled)
    }

    private func perform(_ actions: [HelperPool<HelperProcess>.Action]) {
        ending.removeAll { $0.result != nil }
        for action in actions {
            switch action {
            case .start(let ticket, let helper, let turn):
                waiters.removeValue(forKey: ticket)?.resume(returning: .proceed(helper, turn: turn))
            case .extend(let ticket, let turn): working[ticket]?.allow(turn)
            case .evict(let ticket): working[ticket]?.evict()
            case .cool(let instant): armCoolTimer(at: instant)
            }
        }
    }

    private func armCoolTimer(at instant: ContinuousClock.Instant) {
        let timer =
            coolTimer
            ?? LoopTimer(loop) { [weak self] in
                self?.assumeIsolated { $0.cool() }
            }
        coolTimer = timer
        timer.arm(at: instant)
    }

    private func cool() {
        let (ended, again) = pool.cool(at: .now)
        for helper in ended {
            helper.assumeIsolated { $0.kill() }
            ending.append(helper)
        }
        if let again { armCoolTimer(at: again) }
    }
}
