package import FreshetEventLoop
package import FreshetHelper
import FreshetJQ
import FreshetModel
package import FreshetPipelines
import Glibc

/// Runs jq programs for the engine, in helper processes.
///
/// A few helpers run; each serves one request at a time. ``HelperPool`` selects the next of the waiting requests. A
/// helper without work, with its compiled programs, is kept for five seconds. Cancelling a request kills only its own
/// helper.
///
/// jq 1.6 reads numbers as IEEE doubles: integers beyond 2^53 lose their last digits (``FreshetJQ/JQHelper``).
package actor JQTransformer: JQEvaluating {
    private enum Allowance {
        case proceed(HelperProcess?, slice: Duration?)
        case cancelled
    }

    private let loop: EventLoop
    private let workers: WorkerPool
    private let helper: ChildProcess.Command
    /// The budget from which helpers get memory; nil: each helper has ``FreshetJQ/JQHelper/memoryLimit``.
    private let memory: MemoryBudget?
    package nonisolated let maxOutput: UInt64
    private let warmth: Duration
    /// The program whose helpers render templates; nil: the installed one.
    private let templateProgram: String?
    /// Whether its helpers render templates; otherwise they run jq programs.
    private let isForTemplates: Bool
    /// Renders templates; nil: there was none yet.
    private var templates: JQTransformer?
    /// Called once, then nil.
    private var reportGaps: (@Sendable (HelperSandbox.Gaps) -> Void)?

    private var pool: HelperPool<HelperProcess>
    private var waiters: [UInt64: CheckedContinuation<Allowance, Never>] = [:]
    private var lastTicket: UInt64 = 0
    private var working: [UInt64: ProcessorTimeWatch] = [:]
    private var coolTimer: LoopTimer?
    /// Helpers that were killed and whose end the kernel has not reported yet.
    private var ending: [HelperProcess] = []

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - helper: the command that starts a helper, by default this program itself.
    ///   - maxOutput: the most bytes of output of a program.
    ///   - memory: the memory budget of all requests.
    ///   - templateProgram: the program that renders templates; nil: the installed one.
    ///   - isForTemplates: whether the helpers render templates instead of running jq programs.
    ///   - warmth: how long a helper without work is kept.
    ///   - gaps: called on the loop's thread, once, if the sandbox of a helper is incomplete.
    package init(
        _ loop: EventLoop, workers: WorkerPool, helper: ChildProcess.Command = JQTransformer.thisProgram,
        maxOutput: UInt64 = CheckRules.defaultMaxBytes, memory: MemoryBudget? = nil, warmth: Duration = .seconds(5),
        templateProgram: String? = nil, isForTemplates: Bool = false,
        gaps: (@Sendable (HelperSandbox.Gaps) -> Void)? = nil
    ) {
        // All levels together have as many permits as there are processors, and at least three.
        pool = HelperPool(permitsPerLevel: Self.permitsPerLevel, warmth: warmth)
        self.loop = loop
        self.workers = workers
        self.helper = helper
        self.memory = memory
        self.maxOutput = maxOutput
        self.warmth = warmth
        self.templateProgram = templateProgram
        self.isForTemplates = isForTemplates
        reportGaps = gaps
    }

    private static var permitsPerLevel: Int { (sysconf(Int32(_SC_NPROCESSORS_ONLN)) + 2) / 3 }

    /// The part of a memory limit that is left for long answers if each helper works on a small one: at least half of
    /// the limit.
    package static func memoryForLongAnswers(of limit: UInt64) -> UInt64 {
        let helpers = UInt64(max(1, permitsPerLevel) * HelperPool<HelperProcess>.slices.count)
        return limit - min(limit / 2, helpers * MemoryShare.small.total)
    }

    /// The command that starts this program as a helper: the running file, even if an upgrade has replaced it on disk.
    package static var thisProgram: ChildProcess.Command { program("/proc/self/exe") }

    /// The command that starts a program as a helper; the program must support ``JQHelper/argument``.
    package static func program(_ path: String) -> ChildProcess.Command {
        ChildProcess.Command(path: path, arguments: [JQHelper.argument], environment: JQHelper.environment)
    }

    package nonisolated func share(of pipeline: UInt64) -> any Transforming {
        JQClient(transformer: self, pipeline: pipeline)
    }

    /// Sends a request that does not belong to one pipeline.
    package func exchange(_ request: HelperRequest) async throws(FetchError) -> HelperReply {
        try await exchange(request, of: 0)
    }

    // MARK: For tests

    var idleHelpers: Int { pool.warm.count }
    var warmIdentifiers: [Int32] { pool.warm.map(\.helper.identifier) }
    /// The number of requests that helpers process now.
    var runningHelpers: Int { working.count }
    var waitingRequests: Int { waiters.count }
    /// The number of helpers that were killed and whose end is not known yet.
    var endingHelpers: Int { ending.count { $0.result == nil } }

    // MARK: One request

    /// - Parameter reserved: the memory for the request; nil to reserve it here.
    func exchange(
        _ request: HelperRequest, of pipeline: UInt64, using reserved: MemoryReservation? = nil
    ) async throws(FetchError) -> HelperReply {
        guard !Task.isCancelled else { throw .cancelled }
        if let failure = Self.excess(of: request) { throw .failed(failure) }
        if request.purpose == .template, !isForTemplates {
            return try await templateTransformer().exchange(request, of: pipeline, using: reserved)
        }
        guard let memory else { return try await exchange(request, of: pipeline, in: .unlimited) }
        if let reserved { return try await exchange(request, of: pipeline, in: HelperMemory(reserved)) }
        // A small request needs no reservation, because the budget already takes its memory into account; that of
        // templates is not in this account.
        if request.input.count <= MemoryShare.smallInput, !isForTemplates {
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
        _ request: HelperRequest, of pipeline: UInt64, _ level: MemoryShare.Level, of memory: MemoryBudget
    ) async throws(FetchError) -> HelperReply {
        let reservation = try await memory.reserve(for: request.input.count, level)
        defer { reservation.release() }
        return try await exchange(request, of: pipeline, in: HelperMemory(reservation))
    }

    private func exchange(
        _ request: HelperRequest, of pipeline: UInt64, in memory: HelperMemory
    ) async throws(FetchError) -> HelperReply {
        let request = memory.bounded(request)
        lastTicket += 1
        let ticket = lastTicket
        var allowance = await waitForPermit(of: ticket) { $0.enter(ticket, of: pipeline) }
        while case .proceed(let warm, let limit) = allowance {
            guard let reply = try await work(on: request, as: ticket, warm, slice: limit, in: memory) else {
                // The request starts again, with a longer time slice, when it gets a permit.
                allowance = await waitForPermit(of: ticket) { $0.evicted(ticket) }
                continue
            }
            if reply.status == .outputTooLarge, let failure = memory.excess(of: request, maxOutput) {
                throw .failed(failure)
            }
            return reply
        }
        throw .cancelled
    }

    /// The transformer whose helpers render templates. It is made for the first template.
    private func templateTransformer() throws(FetchError) -> JQTransformer {
        if let templates { return templates }
        guard let path = templateProgram ?? TemplateProgram.path() else {
            let problem = TemplateProgram.problem()
            throw .failed(RunFailure(.local, "\(problem?.message ?? "")"))
        }
        let templates = JQTransformer(
            loop, workers: workers,
            helper: ChildProcess.Command(
                path: path, arguments: [TemplateProgram.argument], environment: JQHelper.environment),
            maxOutput: maxOutput, memory: memory, warmth: warmth, isForTemplates: true, gaps: reportGaps)
        self.templates = templates
        return templates
    }

    private static func excess(of request: HelperRequest) -> RunFailure? {
        if request.program.utf8.count > HelperRequest.maxProgram {
            return TransformFailure.tooLong(request.name, HelperRequest.maxProgram)
        }
        if request.variables.count > HelperRequest.maxVariables {
            return TransformFailure.tooLong("the variables of the jq program", HelperRequest.maxVariables)
        }
        if request.input.count > HelperRequest.maxInput {
            return TransformFailure.tooLong(request.nameOfInput, HelperRequest.maxInput)
        }
        return nil
    }

    /// Processes a request on a helper. Returns nil if the request was evicted before it was finished.
    private func work(
        on request: HelperRequest, as ticket: UInt64, _ warm: HelperProcess?, slice: Duration?, in memory: HelperMemory
    ) async throws(FetchError) -> HelperReply? {
        let helper: HelperProcess
        do throws(SystemCallError) {
            helper = try await usable(warm, memory)
        } catch {
            perform(pool.leave(ticket, nil, used: nil, at: .now))
            throw .failed(
                RunFailure(.local, "could not start the \(isForTemplates ? "template" : "jq") helper: \(error)"))
        }
        let watch = ProcessorTimeWatch(helper, loop) { [weak self] in
            self?.assumeIsolated { $0.perform($0.pool.sliceEnded(ticket)) }
        }
        working[ticket] = watch
        watch.allow(slice)
        let reply = await helper.exchange(request)
        working[ticket] = nil
        // A cancelled task has killed its helper, perhaps just after the reply: the helper must not be used again.
        guard let reply, reply.status != .notConfined, !watch.isEvicted, !Task.isCancelled else {
            let exit = await helper.end()
            if watch.isEvicted, !Task.isCancelled { return nil }
            perform(pool.leave(ticket, nil, used: nil, at: .now))
            guard !Task.isCancelled else { throw .cancelled }
            throw .failed(
                reply.flatMap { TransformFailure.of($0, to: request) } ?? memory.failure(exit, at: request))
        }
        let used = watch.used
        // A helper keeps the memory that it has allocated, so it is not kept for further requests.
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
        guard let limit = memory.limit(forTemplates: isForTemplates) else { return helper }
        do throws(SystemCallError) {
            try helper.limit(memory: limit)
        } catch {
            await helper.end()
            throw error
        }
        return helper
    }

    /// Waits until the request may start.
    ///
    /// - Parameter event: the pool's event that may start the request immediately.
    private func waitForPermit(
        of ticket: UInt64, after event: (inout HelperPool<HelperProcess>) -> [HelperPool<HelperProcess>.Action]
    ) async -> Allowance {
        // A task may be cancelled on any thread; the timer switches to the loop's thread.
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
        // A request that has been started detects the cancellation itself.
        guard pool.abandon(ticket) else { return }
        waiters.removeValue(forKey: ticket)?.resume(returning: .cancelled)
    }

    private func perform(_ actions: [HelperPool<HelperProcess>.Action]) {
        ending.removeAll { $0.result != nil }
        for action in actions {
            switch action {
            case .start(let ticket, let helper, let slice):
                waiters.removeValue(forKey: ticket)?.resume(returning: .proceed(helper, slice: slice))
            case .extend(let ticket, let slice): working[ticket]?.allow(slice)
            case .evict(let ticket): working[ticket]?.evict()
            case .cool(let instant): armCoolTimer(at: instant)
            }
        }
    }

    private func armCoolTimer(at instant: BootInstant) {
        let timer =
            coolTimer
            ?? LoopTimer(loop) { [weak self] in
                self?.assumeIsolated { $0.cool() }
            }
        coolTimer = timer
        timer.arm(at: instant.continuous)
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
