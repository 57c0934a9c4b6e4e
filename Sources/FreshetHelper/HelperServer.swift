import Glibc

/// The loop of a helper process: it receives requests and sends replies until the input ends.
package enum HelperServer {
    /// The most processor time of one request, in seconds. If a request exceeds the limit, SIGXCPU ends the helper. The
    /// limit also ends a helper that lost its parent while it runs an endless program.
    package static let processorLimit: UInt64 = 60

    /// Serves requests one after the other until the input ends or contains an invalid request. Blocks.
    ///
    /// - Parameters:
    ///   - limitsProcessorTime: whether each request has at most ``processorLimit``; the limit applies to the whole
    ///     process.
    ///   - confinement: the result of confining the process. After a failure, every request gets the failure as its
    ///     reply, and `answer` is not called.
    ///   - answer: makes the reply.
    package static func run(
        input: Int32, output: Int32, limitsProcessorTime: Bool,
        confinement: Result<HelperSandbox.Gaps, HelperSandbox.Failure>, answer: (HelperRequest) -> HelperReply
    ) {
        while let request = receive(from: input) {
            if limitsProcessorTime { allowProcessorTime() }
            var reply: HelperReply
            switch confinement {
            case .success(let gaps):
                reply = answer(request)
                reply.gaps = gaps
            case .failure(let failure):
                reply = .message(.notConfined, failure.description)
            }
            guard send(reply.head, to: output), send(reply.bytes, to: output) else { return }
        }
    }

    // MARK: Limits

    /// Confines this process permanently: sets its limits and its sandbox. The process must have one thread.
    ///
    /// - Parameter memory: the address space of the process, in bytes.
    /// - Returns: the parts of the sandbox that the kernel lacks.
    package static func confine(memory: UInt64) throws(HelperSandbox.Failure) -> HelperSandbox.Gaps {
        // Before the limit on descriptors: Landlock temporarily needs a descriptor.
        let gaps = try HelperSandbox.denyObjects()
        limit(RLIMIT_AS, to: memory)
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

    private static func receive(from input: Int32) -> HelperRequest? {
        guard let head = read(HelperRequest.Header.size, from: input), let header = HelperRequest.Header(head),
            let program = read(header.program, from: input), let variables = read(header.variables, from: input),
            let body = read(header.input, from: input)
        else { return nil }
        return HelperRequest(
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
