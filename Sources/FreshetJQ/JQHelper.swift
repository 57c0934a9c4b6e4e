import Glibc

/// The process in which jq programs run.
///
/// libjq cannot be interrupted, aborts its process if memory runs out, and runs programs that may loop and allocate
/// without end. So programs and the untrusted bodies that they read are processed in a separate process with few
/// rights: an environment that has only the time zone UTC, only the descriptors for input and output, limits on memory
/// and processor time, and a sandbox (``HelperSandbox``). If the helper takes too long, the process that started it
/// kills it and starts another helper.
///
/// jq 1.6 keeps numbers as IEEE doubles. An integer beyond 2^53 loses its last digits: 9007199254740993 becomes
/// 9007199254740992; a number beyond the range of doubles becomes 1.7976931348623157e+308. To keep such numbers exact,
/// do not transform the data, or let the origin send the numbers as strings.
package enum JQHelper {
    /// The command-line argument that makes a program run as a helper.
    package static let argument = "--jq-helper"
    /// The address space of a helper, in bytes.
    package static let memoryLimit: UInt64 = 512 << 20
    /// The most processor time of one request, in seconds. If a request exceeds the limit, SIGXCPU ends the helper. The
    /// limit also ends a helper that lost its parent while it runs an endless program.
    package static let processorLimit: UInt64 = 60

    /// The environment with which a helper is started. The helper first replaces this environment by one that has only
    /// `TZ`, so that jq programs cannot read it.
    package static let environment = ["SWIFT_BACKTRACE": "enable=no"]

    /// Runs a helper on standard input and output until the input ends. Call it first in a new process.
    package static func main() -> Never {
        run(
            input: STDIN_FILENO, output: STDOUT_FILENO, limitsProcessorTime: true,
            confinement: Result { () throws(HelperSandbox.Failure) in try confine() })
        exit(0)
    }

    /// Serves requests one after the other until the input ends or contains an invalid request. Blocks.
    ///
    /// - Parameters:
    ///   - limitsProcessorTime: whether each request has at most ``processorLimit``; the limit applies to the whole
    ///     process.
    ///   - confinement: the result of confining the process. After a failure, every request gets the failure as its
    ///     reply, and no program runs.
    package static func run(
        input: Int32, output: Int32, limitsProcessorTime: Bool = false,
        confinement: Result<HelperSandbox.Gaps, HelperSandbox.Failure> = .success([])
    ) {
        var cache = ProgramCache()
        while let request = receive(from: input) {
            if limitsProcessorTime { allowProcessorTime() }
            var reply: JQReply
            switch confinement {
            case .success(let gaps):
                reply = request.purpose == .form ? ContentProbe.reply(to: request) : cache.reply(to: request)
                reply.gaps = gaps
            case .failure(let failure):
                reply = .message(.notConfined, failure.description)
            }
            guard send(reply.head, to: output), send(reply.bytes, to: output) else { return }
        }
    }

    // MARK: Limits

    /// Confines this process permanently: sets its environment, its limits and its sandbox. The process must have one
    /// thread.
    ///
    /// - Returns: the parts of the sandbox that the kernel lacks.
    package static func confine() throws(HelperSandbox.Failure) -> HelperSandbox.Gaps {
        clearenv()
        // Local time is UTC: in zones with summer time, mktime of jq 1.6 is wrong by an hour during summer time, and so
        // are functions that use mktime, such as fromdate. TZ also makes the environment non-null: after clearenv(3)
        // alone, libjq's `env` crashes.
        setenv("TZ", "UTC0", 1)
        tzset()
        // Before the limit on descriptors: Landlock temporarily needs a descriptor.
        let gaps = try HelperSandbox.denyObjects()
        limit(RLIMIT_AS, to: memoryLimit)
        limit(RLIMIT_CORE, to: 0)
        // The three standard descriptors are in use, so the process cannot open anything.
        limit(RLIMIT_NOFILE, to: 3)
        return gaps.union(try HelperSandbox.filterSystemCalls())
    }

    private static func allowProcessorTime() {
        var used = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit)
        // Rounded up: the kernel counts whole seconds.
        limit.rlim_cur = min(rlim_t(used.tv_sec) + 1 + rlim_t(processorLimit), limit.rlim_max)
        setrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit)
    }

    /// Sets a soft and a hard limit. It fails only if the present hard limit is lower, which is stricter.
    private static func limit(_ resource: __rlimit_resource, to value: UInt64) {
        var limit = rlimit(rlim_cur: rlim_t(value), rlim_max: rlim_t(value))
        setrlimit(__rlimit_resource_t(resource.rawValue), &limit)
    }

    // MARK: Frames

    private static func receive(from input: Int32) -> JQRequest? {
        guard let head = read(JQRequest.Header.size, from: input), let header = JQRequest.Header(head),
            let program = read(header.program, from: input), let variables = read(header.variables, from: input),
            let body = read(header.input, from: input)
        else { return nil }
        return JQRequest(
            header.purpose, program: String(decoding: program, as: UTF8.self), variables: variables, input: body,
            isText: header.isText, maxOutput: header.maxOutput)
    }

    /// Reads exactly `count` bytes, or returns nil at the end of the input.
    private static func read(_ count: Int, from descriptor: Int32) -> [UInt8]? {
        // All threads share the empty array's storage, and this initializer writes its count.
        guard count > 0 else { return [] }
        var done = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            while done < count {
                let result = Glibc.read(descriptor, buffer.baseAddress?.advanced(by: done), count - done)
                if result < 0 && errno == EINTR { continue }
                guard result > 0 else { break }
                done += result
            }
            initialized = done
        }
        return done == count ? bytes : nil
    }

    private static func send(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return false }
            rest.removeFirst(count)
        }
        return true
    }
}

extension ProgramCache {
    fileprivate mutating func reply(to request: JQRequest) -> JQReply {
        do throws(JQProgram.Invalid) {
            let variables = JQVariables(request.variables)
            return try program(request.program, variables: variables.names).run(
                request.purpose, over: request.input, isText: request.isText, with: variables,
                maxOutput: request.maxOutput)
        } catch {
            return .message(.invalidProgram, error.message)
        }
    }
}
