import Glibc

/// The process in which jq programs run.
///
/// libjq cannot be interrupted and aborts its process when memory runs out, and a jq program is a program: it loops and
/// it allocates. So programs and the bodies that they read, which come from anywhere, are handled in a process that has
/// nothing to lose: no environment but UTC as its time zone, no descriptors but its own two ends, limits on memory and
/// processor time, and a sandbox (``HelperSandbox``). Whoever started it kills it when it takes too long, and starts
/// another.
///
/// jq 1.6 keeps numbers as IEEE doubles. An integer beyond 2^53 loses its last digits: 9007199254740993 becomes
/// 9007199254740992; a number beyond the range of doubles becomes 1.7976931348623157e+308. Who needs such numbers whole
/// has to leave the data untransformed, or have them sent as strings.
package enum JQHelper {
    /// The argument by which a program knows that it is to be a helper.
    package static let argument = "--jq-helper"
    /// The address space of a helper, in bytes.
    package static let memoryLimit: UInt64 = 512 << 20
    /// The processor time of one request, in seconds. A request that passes it ends the helper by SIGXCPU; it also ends
    /// a helper that lost its parent in the middle of an endless program.
    package static let processorLimit: UInt64 = 60

    /// The environment with which a helper is to be started. Before it does anything else it puts one in its place that
    /// has nothing but `TZ`, so that no program sees this one.
    package static let environment = ["SWIFT_BACKTRACE": "enable=no"]

    /// Is a helper on standard input and output, until the input ends. Call it first thing in a process of its own.
    package static func main() -> Never {
        run(
            input: STDIN_FILENO, output: STDOUT_FILENO, limitsProcessorTime: true,
            confinement: Result { () throws(HelperSandbox.Failure) in try confine() })
        exit(0)
    }

    /// Serves requests one after the other, until the input ends or has what is no request. Blocks.
    ///
    /// - Parameters:
    ///   - limitsProcessorTime: whether each request has ``processorLimit`` at most; it is the process's own.
    ///   - confinement: how confining the process went. After a failure no request is worked on: each is answered with
    ///     the failure.
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

    /// Confines this process, which has one thread, for ever: its environment, its limits, and its sandbox.
    ///
    /// - Returns: what the kernel lacks.
    package static func confine() throws(HelperSandbox.Failure) -> HelperSandbox.Gaps {
        clearenv()
        // Local time is UTC: where the zone has summer time, mktime of jq 1.6 is an hour off while it is in force, and so
        // are fromdate and whatever else is made of it. Besides, clearenv(3) leaves no list at all, which libjq's `env`
        // does not survive.
        setenv("TZ", "UTC0", 1)
        tzset()
        // Before the limit of descriptors: Landlock needs one for a moment.
        let gaps = try HelperSandbox.denyObjects()
        limit(RLIMIT_AS, to: memoryLimit)
        limit(RLIMIT_CORE, to: 0)
        // The three standard descriptors are taken: nothing can be opened any more, whatever a program finds to try.
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

    /// Sets a soft and a hard limit; one that cannot be set, because the hard limit is below it, is stricter already.
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

    /// Reads so many bytes, or returns nil at the end of the input.
    private static func read(_ count: Int, from descriptor: Int32) -> [UInt8]? {
        // An array without capacity is one that all threads share, and this initializer writes its count.
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
