import CLinux
import Glibc
import Synchronization

/// A child process: spawned without a shell, in a process group of its own, awaited by a pidfd on the loop.
///
/// The child gets default signal handlers, an empty signal mask, no descriptors but the three that it is given, and a
/// usual limit of them.
public final class ChildProcess: Sendable {
    /// The most descriptors that a child may have open, unless it raises its soft limit itself: what select(2) bears, and
    /// what systemd gives a service (systemd.exec(5), LimitNOFILE=). This process may have many more.
    public static let descriptorLimit: UInt64 = 1_024

    /// How a process ended.
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

    /// What to run. There is no shell and no search of PATH: a command is a path and its arguments.
    public struct Command: Hashable, Sendable {
        /// The executable's absolute path.
        public var path: String
        /// The arguments after the name.
        public var arguments: [String]
        /// The whole environment of the child.
        public var environment: [String: String]
        /// Where it starts; nil: where the parent is.
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

    /// The id of the process, which is the id of its group; with supervision that of the supervisor.
    public let identifier: Int32
    private let supervision: ProcessSupervision?
    private let children: ChildRegistry
    private let exit: ExitState
    private let watch: Mutex<DescriptorWatch?>
    private let isEnding = Mutex(false)

    /// Starts a command.
    ///
    /// - Parameters:
    ///   - loop: where its end is heard of.
    ///   - command: what is executed, and how.
    ///   - input: the child's descriptor 0; the caller keeps and closes its own, as with the next two.
    ///   - output: the child's descriptor 1.
    ///   - error: the child's descriptor 2.
    ///   - endsDescendants: whether all processes that the child has started end with it, also those that have left its
    ///     process group and session, and those that this process leaves behind when it is killed. One more process runs
    ///     for each such child.
    public init(
        _ loop: EventLoop, _ command: Command, input: Int32, output: Int32, error: Int32, endsDescendants: Bool = false
    ) throws(SystemCallError) {
        let children = loop.children
        let supervision = endsDescendants ? try ProcessSupervision() : nil
        let identifier = try children.note { () throws(SystemCallError) in
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
            // Without a pidfd it could never be awaited: end it and reap it here. It cannot ignore SIGKILL.
            Self.end(identifier, supervision)
            Self.awaitEnd(of: identifier)
            children.forget(identifier)
            throw SystemCallError("pidfd_open", errno: reason, subject: command.path)
        }
        let descriptor = OwnedDescriptor(pidfd)
        let watch = try loop.watch(pidfd, for: .read, named: "child process") { [weak self] _ in
            // Once only: on another thread than the loop's this may run before the watch is in its place, and so again.
            if exit.result == nil {
                guard let end = Self.reap(descriptor.rawValue) else { return }
                let result = supervision?.exit ?? end
                children.forget(identifier)
                if let supervision, supervision.exit == nil { children.supervisorIsLost() }
                exit.end(with: result)
            }
            self?.watch.withLock { $0 }?.cancel()
        }
        self.watch.withLock { $0 = watch }
    }

    /// Awaits the end. A cancelled caller still waits: use ``signal(_:)`` to end the process.
    public func wait() async -> Exit {
        await withCheckedContinuation { exit.add($0) }
    }

    /// How it ended, or nil while it runs.
    public var result: Exit? { exit.result }

    /// Sends a signal to the whole process group, so that processes that the command started get it, too. With supervision
    /// SIGKILL ends all descendants; sent once more, also a supervisor that does not do so, such as one that the command
    /// stops again and again.
    ///
    /// After the child's end, members of its group that are left still get it; none left is no error.
    public func signal(_ number: Int32) {
        guard supervision != nil else {
            kill(-identifier, number)
            return
        }
        // The number may be another process's after the end.
        guard exit.result == nil else { return }
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
        // The command may have stopped it.
        kill(identifier, SIGCONT)
    }

    private static func awaitEnd(of identifier: Int32) {
        while waitpid(identifier, nil, 0) < 0, errno == EINTR {}
    }

    // Who starts a child awaits it. One that nobody can await any more is ended and reaped here, so that no zombie stays;
    // after SIGKILL that is a matter of the kernel's moment.
    deinit {
        watch.withLock { $0 }?.cancel()
        guard exit.result == nil else { return }
        Self.end(identifier, supervision)
        Self.awaitEnd(of: identifier)
        children.forget(identifier)
    }

    private static func reap(_ pidfd: Int32) -> Exit? {
        var info = siginfo_t()
        guard waitid(P_PIDFD, UInt32(pidfd), &info, WEXITED | WNOHANG) == 0 else {
            // ECHILD: someone else reaped it (a parent that ignores SIGCHLD). It is gone all the same.
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
                    // After the last one is null.
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
            // safe: the array has at least its null, so it has an address.
            guard let base = buffer.baseAddress else { preconditionFailure("an array with an element has an address") }
            return body(base)
        }
    }
}

/// The end of a process, and those who wait for it.
private final class ExitState: Sendable {
    private struct State {
        var result: ChildProcess.Exit?
        var waiters: [CheckedContinuation<ChildProcess.Exit, Never>] = []
    }
    private let state = Mutex(State())

    var result: ChildProcess.Exit? { state.withLock { $0.result } }

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
