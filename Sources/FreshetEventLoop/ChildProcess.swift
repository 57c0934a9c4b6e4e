import CLinux
import Glibc
import Synchronization

/// A child process, started without a shell in its own process group; a pidfd on the loop reports its end.
///
/// The child gets default signal handlers, an empty signal mask, only the three given descriptors, and a usual limit of
/// descriptors.
public final class ChildProcess: Sendable {
    /// The maximum number of open descriptors of a child, unless it raises its soft limit itself: the limit of
    /// select(2), and the default of systemd services (systemd.exec(5), LimitNOFILE=). This process may have many more.
    public static let descriptorLimit: UInt64 = 1_024

    /// The end of a process.
    public enum Exit: Hashable, Sendable, CustomStringConvertible {
        /// It called exit(3) with this status, 0 to 255.
        case exited(status: Int32)
        /// A signal ended it.
        case signalled(Int32)

        public var description: String {
            switch self {
            case .exited(let status): "exited with status \(status)"
            case .signalled(let signal): "was ended by signal \(signal)"
            }
        }
    }

    /// The program to run, as a path and arguments: no shell is started and PATH is not searched.
    public struct Command: Hashable, Sendable {
        /// The executable's absolute path.
        public var path: String
        /// The arguments after the name.
        public var arguments: [String]
        /// The whole environment of the child.
        public var environment: [String: String]
        /// The working directory; nil: the parent's.
        public var directory: String?

        public init(
            path: String, arguments: [String] = [], environment: [String: String] = [:], directory: String? = nil
        ) {
            self.path = path
            self.arguments = arguments
            self.environment = environment
            self.directory = directory
        }
    }

    /// The process id, which is also the process group id. With supervision it is the supervisor's.
    public let identifier: Int32
    private let supervision: ProcessSupervision?
    private let children: ChildRegistry
    private let exit: ExitState
    private let watch: Mutex<DescriptorWatch?>
    private let isEnding = Mutex(false)

    /// Starts a command.
    ///
    /// - Parameters:
    ///   - loop: The loop that watches for its end.
    ///   - command: The program to run.
    ///   - input: The child's descriptor 0. The caller keeps and closes its own descriptor, also of the next two.
    ///   - output: The child's descriptor 1.
    ///   - error: The child's descriptor 2.
    ///   - endsDescendants: Whether all processes that the child has started end with the child, also those that have
    ///     left its process group and session, and also if this process is killed. Each such child needs one more
    ///     process, the supervisor.
    public init(
        _ loop: EventLoop, _ command: Command, input: Int32, output: Int32, error: Int32, endsDescendants: Bool = false
    ) throws(SystemCallError) {
        let children = loop.children
        let supervision = endsDescendants ? try ProcessSupervision() : nil
        let identifier = try children.register { () throws(SystemCallError) in
            try Self.spawn(command, standard: (input, output, error), supervision)
        }
        self.identifier = identifier
        self.supervision = supervision
        self.children = children
        let exit = ExitState()
        self.exit = exit
        watch = Mutex(nil)
        let pidfd = freshet_pidfd_open(identifier, 0)
        guard pidfd >= 0 else {
            let reason = errno
            // Without a pidfd its end could never be awaited: end it and reap it here. It cannot ignore SIGKILL.
            Self.end(identifier, supervision)
            Self.awaitEnd(of: identifier)
            children.unregister(identifier)
            throw SystemCallError("pidfd_open", errno: reason, subject: command.path)
        }
        let descriptor = OwnedDescriptor(pidfd)
        let watch = try loop.watch(pidfd, for: .read, named: "child process") { [weak self] _ in
            // Reap only once: on another thread this may run before `watch` is set, and then runs again.
            if exit.result == nil {
                guard let end = exit.reap({ Self.reap(descriptor.rawValue) }) else { return }
                let result = supervision?.exit ?? end
                children.unregister(identifier)
                if let supervision, supervision.exit == nil { children.supervisorIsLost() }
                exit.end(with: result)
            }
            self?.watch.withLock { $0 }?.cancel()
        }
        self.watch.withLock { $0 = watch }
    }

    /// Awaits the end. A cancelled caller still waits; use ``signal(_:)`` to end the process.
    public func wait() async -> Exit {
        await withCheckedContinuation { exit.add($0) }
    }

    /// The exit, or nil while the process runs.
    public var result: Exit? { exit.result }

    /// Sends a signal to the whole process group, which includes processes that the command started. With supervision,
    /// SIGKILL ends all descendants. A second SIGKILL ends the supervisor if it does not do so, for example because the
    /// command stops it repeatedly.
    ///
    /// After the child's end, nothing receives the signal, because another process, or another group, may have its id.
    public func signal(_ number: Int32) { exit.beforeReaping { send(number) } }

    private func send(_ number: Int32) {
        guard supervision != nil else {
            kill(-identifier, number)
            return
        }
        guard number == SIGKILL else {
            kill(identifier, number)
            return
        }
        let isFirst = isEnding.withLock { isEnding in
            defer { isEnding = true }
            return !isEnding
        }
        if isFirst { Self.end(identifier, supervision) } else { kill(identifier, SIGKILL) }
    }

    private static func end(_ identifier: Int32, _ supervision: ProcessSupervision?) {
        guard supervision != nil else {
            kill(-identifier, SIGKILL)
            return
        }
        kill(identifier, FRESHET_END_ALL)
        // The command may have stopped the supervisor.
        kill(identifier, SIGCONT)
    }

    private static func awaitEnd(of identifier: Int32) {
        while waitpid(identifier, nil, 0) < 0, errno == EINTR {}
    }

    // A program should await each child. If a child is released before its end, end and reap it here, so that it does
    // not stay a zombie; after SIGKILL this takes the kernel only a moment.
    deinit {
        watch.withLock { $0 }?.cancel()
        guard exit.result == nil else { return }
        Self.end(identifier, supervision)
        Self.awaitEnd(of: identifier)
        children.unregister(identifier)
    }

    private static func reap(_ pidfd: Int32) -> Exit? {
        var info = siginfo_t()
        guard waitid(P_PIDFD, UInt32(pidfd), &info, WEXITED | WNOHANG) == 0 else {
            // ECHILD: something else reaped it (a parent that ignores SIGCHLD). The process has ended.
            return errno == EINTR ? nil : .exited(status: 255)
        }
        guard info.si_signo == SIGCHLD else { return nil }
        let status = info._sifields._sigchld.si_status
        return info.si_code == Int32(CLD_EXITED) ? .exited(status: status) : .signalled(status)
    }

    private static func spawn(
        _ command: Command, standard: (Int32, Int32, Int32), _ supervision: ProcessSupervision?
    ) throws(SystemCallError) -> Int32 {
        let environment = command.environment.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        var spawn = freshet_spawn()
        spawn.standard = standard
        spawn.descriptor_limit = descriptorLimit
        let child = withCStrings([command.path] + command.arguments) { arguments in
            withCStrings(environment) { environment in
                withCStrings([command.path] + [command.directory].compactMap(\.self)) { paths in
                    spawn.arguments = arguments
                    spawn.environment = environment
                    spawn.path = UnsafePointer(paths[0])
                    // The array ends with null.
                    spawn.directory = UnsafePointer(paths[1])
                    return supervision?.start(&spawn) ?? freshet_spawn(&spawn)
                }
            }
        }
        guard child < 0 || spawn.failure != 0 else { return child }
        if child > 0 { awaitEnd(of: child) }
        let call = String(cString: spawn.failed_call)
        throw SystemCallError(call, errno: spawn.failure, subject: call == "chdir" ? command.directory : command.path)
    }

    /// Calls `body` with a null-terminated array of C strings.
    private static func withCStrings<Result>(
        _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
    ) -> Result {
        var pointers = strings.map { strdup($0) }
        pointers.append(nil)
        defer { for pointer in pointers { free(pointer) } }
        return pointers.withUnsafeBufferPointer { buffer in
            // safe: the array contains at least the null, so it has an address.
            guard let base = buffer.baseAddress else { preconditionFailure("an array with an element has an address") }
            return body(base)
        }
    }
}

/// The end of a process, and the callers that wait for it.
private final class ExitState: Sendable {
    private struct State {
        /// Whether the kernel may give the process id to another process.
        var isReaped = false
        var result: ChildProcess.Exit?
        var waiters: [CheckedContinuation<ChildProcess.Exit, Never>] = []
    }
    private let state = Mutex(State())

    var result: ChildProcess.Exit? { state.withLock { $0.result } }

    /// Calls `body` unless the process was reaped. It is not reaped meanwhile.
    func beforeReaping(_ body: () -> Void) {
        state.withLock { if !$0.isReaped { body() } }
    }

    /// Reaps the process with `body`, which returns nil if the process has not ended.
    func reap(_ body: () -> ChildProcess.Exit?) -> ChildProcess.Exit? {
        state.withLock { state in
            let end = body()
            if end != nil { state.isReaped = true }
            return end
        }
    }

    func add(_ waiter: CheckedContinuation<ChildProcess.Exit, Never>) {
        let result = state.withLock { state in
            if state.result == nil { state.waiters.append(waiter) }
            return state.result
        }
        if let result { waiter.resume(returning: result) }
    }

    func end(with result: ChildProcess.Exit) {
        let waiters = state.withLock { state in
            state.result = result
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: result) }
    }
}
