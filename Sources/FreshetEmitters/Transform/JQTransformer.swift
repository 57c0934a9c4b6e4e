package import FreshetEventLoop
package import FreshetJQ
package import FreshetPipelines
import Glibc

/// The engine's ``Transforming`` made real: jq programs in helper processes.
///
/// At most two helpers run, each serving one request at a time; others wait in order. A helper stays warm for five
/// seconds, and with it the programs that it has compiled. Cancelling a request kills its helper and no other.
///
/// jq 1.6 reads numbers as IEEE doubles: integers beyond 2^53 lose their last digits (``FreshetJQ/JQHelper``).
package actor JQTransformer: Transforming {
    private enum Turn {
        case proceed(HelperProcess?)
        case cancelled
    }

    private let loop: EventLoop
    private let workers: WorkerPool
    private let helper: ChildProcess.Command
    private let maxOutput: UInt64
    /// Called once, and then gone.
    private var reportGaps: (@Sendable (HelperSandbox.Gaps) -> Void)?

    private var pool: HelperPool<HelperProcess>
    private var waiters: [UInt64: CheckedContinuation<Turn, Never>] = [:]
    private var lastTicket: UInt64 = 0
    private var coolTimer: LoopTimer?
    /// Killed, and kept until the kernel has said so.
    private var ending: [HelperProcess] = []

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - helper: how to start a program that becomes a helper: this one, called again.
    ///   - maxOutput: the most bytes that a program may put out.
    ///   - warmth: how long a helper without work is kept.
    ///   - gaps: is called on the loop's thread when the sandbox of a helper lacks something, the first time only.
    package init(
        _ loop: EventLoop, workers: WorkerPool, helper: ChildProcess.Command = JQTransformer.thisProgram,
        maxOutput: UInt64 = CheckRules.defaultMaxBytes, warmth: Duration = .seconds(5),
        gaps: (@Sendable (HelperSandbox.Gaps) -> Void)? = nil
    ) {
        pool = HelperPool(warmth: warmth)
        self.loop = loop
        self.workers = workers
        self.helper = helper
        self.maxOutput = maxOutput
        reportGaps = gaps
    }

    /// This program as a helper: the very file that runs, also when an upgrade has put another in its place.
    package static var thisProgram: ChildProcess.Command { program("/proc/self/exe") }

    /// A program that understands ``JQHelper/argument`` as a helper.
    package static func program(_ path: String) -> ChildProcess.Command {
        ChildProcess.Command(path: path, arguments: [JQHelper.argument], environment: JQHelper.environment)
    }

    package func transform(
        _ input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [UInt8] {
        try await ask(request(.outputs, program, over: input, format, variables)).bytes
    }

    package func values(
        of input: [UInt8], in format: ContentFormat, by program: String, variables: [JQVariable]
    ) async throws(FetchError) -> [[UInt8]] {
        guard let values = try await ask(request(.values, program, over: input, format, variables)).values else {
            throw .failed(RunFailure(.local, "the jq helper's answer cannot be read"))
        }
        return values
    }

    private func request(
        _ purpose: JQRequest.Purpose, _ program: String, over input: [UInt8], _ format: ContentFormat,
        _ variables: [JQVariable] = []
    ) -> JQRequest {
        JQRequest(
            purpose, program: program, variables: JQVariable.object(variables), input: input,
            isText: format == .text, maxOutput: maxOutput)
    }

    package func holds(
        _ predicate: String, for input: [UInt8], in format: ContentFormat
    ) async throws(FetchError) -> Bool {
        try await ask(request(.verdict, predicate, over: input, format)).verdict
    }

    package func items(of content: [UInt8], as form: BinaryForm) async throws(FetchError) -> Int? {
        let reply = try await exchange(
            JQRequest(.form, program: form.rawValue, input: content, maxOutput: maxOutput))
        guard reply.status == .done else {
            throw .failed(RunFailure(.content, "it is no \(form.name): \(TransformFailure.words(of: reply))"))
        }
        return Int(String(decoding: reply.bytes, as: UTF8.self))
    }

    /// What is wrong with a program, in jq's words; nil if it compiles.
    ///
    /// - Parameter variables: the names of those that it may use.
    /// - Throws: what kept the helper from looking at it.
    package func fault(in program: String, variables: [String] = []) async throws(FetchError) -> String? {
        let variables = JQVariable.object(variables.map { JQVariable($0, json: Array("null".utf8)) })
        // Without input a program is compiled and never runs.
        let reply = try await exchange(
            JQRequest(.verdict, program: program, variables: variables, input: [], maxOutput: 0))
        return reply.status == .invalidProgram ? TransformFailure.words(of: reply) : nil
    }

    // MARK: For tests

    var idleHelpers: Int { pool.warm.count }
    var warmIdentifiers: [Int32] { pool.warm.map(\.helper.identifier) }
    /// Requests that a helper works on.
    private(set) var runningHelpers = 0
    var waitingRequests: Int { waiters.count }
    /// Helpers that were ended and are not known to be gone.
    var endingHelpers: Int { ending.count { $0.result == nil } }

    // MARK: One request

    private func ask(_ request: JQRequest) async throws(FetchError) -> JQReply {
        let reply = try await exchange(request)
        if let failure = TransformFailure.of(reply, to: request) { throw .failed(failure) }
        return reply
    }

    private func exchange(_ request: JQRequest) async throws(FetchError) -> JQReply {
        guard !Task.isCancelled else { throw .cancelled }
        guard request.program.utf8.count <= JQRequest.maxProgram else {
            throw .failed(TransformFailure.tooLong("the jq program", JQRequest.maxProgram))
        }
        guard request.variables.count <= JQRequest.maxVariables else {
            throw .failed(TransformFailure.tooLong("the variables of the jq program", JQRequest.maxVariables))
        }
        guard request.input.count <= JQRequest.maxInput else {
            throw .failed(TransformFailure.tooLong(request.nameOfInput, JQRequest.maxInput))
        }
        guard case .proceed(let warm) = await turn() else { throw .cancelled }
        let helper: HelperProcess
        do throws(SystemCallError) {
            helper = try await usable(warm)
        } catch {
            leave(nil)
            throw .failed(RunFailure(.local, "could not start the jq helper: \(error)"))
        }
        runningHelpers += 1
        let reply = await helper.exchange(request)
        runningHelpers -= 1
        // A cancelled task has killed its helper, perhaps a moment after the reply: nobody else must get it.
        guard let reply, reply.status != .notConfined, !Task.isCancelled else {
            let exit = await helper.end()
            leave(nil)
            guard !Task.isCancelled else { throw .cancelled }
            throw .failed(
                reply.flatMap { TransformFailure.of($0, to: request) } ?? TransformFailure.of(exit, at: request))
        }
        leave(helper)
        if !reply.gaps.isEmpty { reportGaps.take()?(reply.gaps) }
        return reply
    }

    /// A warm helper if it is still alive, else a new one.
    private func usable(_ warm: HelperProcess?) async throws(SystemCallError) -> HelperProcess {
        if let warm {
            if await warm.isUsable { return warm }
            await warm.end()
        }
        return try await HelperProcess.start(loop, workers: workers, helper)
    }

    /// Waits for one's turn.
    private func turn() async -> Turn {
        lastTicket += 1
        let ticket = lastTicket
        switch pool.enter(ticket) {
        case .proceed(let helper): return .proceed(helper)
        case .wait: break
        }
        // A task may be cancelled on any thread; the timer is the way to this one.
        let hop = LoopTimer(loop) { [weak self] in
            self?.assumeIsolated { $0.abandon(ticket) }
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiters[ticket] = $0 }
        } onCancel: {
            hop.arm(at: .now)
        }
    }

    private func abandon(_ ticket: UInt64) {
        // One that has been called finds out by itself that it is cancelled.
        guard pool.abandon(ticket) else { return }
        waiters.removeValue(forKey: ticket)?.resume(returning: .cancelled)
    }

    private func leave(_ helper: HelperProcess?) {
        ending.removeAll { $0.result != nil }
        switch pool.leave(helper, at: .now) {
        case .call(let ticket, let helper):
            waiters.removeValue(forKey: ticket)?.resume(returning: .proceed(helper))
        case .cool(let instant):
            // One alarm is enough: it sees to the next itself.
            if pool.warm.count == 1 { armCoolTimer(at: instant) }
        case .none:
            break
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
