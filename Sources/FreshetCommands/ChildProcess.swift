import Glibc

/// Runs another program and waits for its end.
enum ChildProcess {
    /// The most bytes that are kept of each output stream; further bytes are read and dropped.
    private static let mostBytes = 64 << 20

    static func run(_ path: String, _ arguments: [String], _ streams: ChildStreams) -> ChildResult {
        switch streams {
        case .shared: runShared(path, arguments)
        case .collected: runCollected(path, arguments)
        }
    }

    /// Ignores SIGINT and SIGQUIT while the child runs, as system(3) does: Ctrl-C is for the child.
    private static func runShared(_ path: String, _ arguments: [String]) -> ChildResult {
        var ignoring = sigaction()
        ignoring.__sigaction_handler.sa_handler = SIG_IGN
        var interrupt = sigaction()
        var quit = sigaction()
        sigaction(SIGINT, &ignoring, &interrupt)
        sigaction(SIGQUIT, &ignoring, &quit)
        defer {
            sigaction(SIGINT, &interrupt, nil)
            sigaction(SIGQUIT, &quit, nil)
        }
        return spawn(path, arguments, nil).map(
            running: { .ended(status: status(of: $0)) }, otherwise: ChildResult.failed)
    }

    private static func runCollected(_ path: String, _ arguments: [String]) -> ChildResult {
        var output: [Int32] = [-1, -1]
        var errorPipe: [Int32] = [-1, -1]
        guard pipe(&output) == 0 else { return .failed(reason(errno)) }
        guard pipe(&errorPipe) == 0 else {
            let why = reason(errno)
            output.forEach { close($0) }
            return .failed(why)
        }
        // This program has one thread, so no other child can inherit the pipes before the flag is set.
        for descriptor in output + errorPipe { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errorPipe[1], STDERR_FILENO)
        let spawned = spawn(path, arguments, &actions)
        close(output[1])
        close(errorPipe[1])
        defer {
            close(output[0])
            close(errorPipe[0])
        }
        return spawned.map(
            running: { child in
                let (written, errorText) = collect(output[0], errorPipe[0])
                return .ended(
                    status: status(of: child), output: String(decoding: written, as: UTF8.self),
                    errorOutput: String(decoding: errorText, as: UTF8.self))
            }, otherwise: ChildResult.failed)
    }

    private enum Spawned {
        case running(pid_t)
        case failed(String)

        func map(running: (pid_t) -> ChildResult, otherwise: (String) -> ChildResult) -> ChildResult {
            switch self {
            case .running(let child): running(child)
            case .failed(let reason): otherwise(reason)
            }
        }
    }

    private static func spawn(
        _ path: String, _ arguments: [String], _ actions: UnsafePointer<posix_spawn_file_actions_t>?
    ) -> Spawned {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The child starts with the default signal mask and actions, as from a shell.
        var defaults = sigset_t()
        sigemptyset(&defaults)
        posix_spawnattr_setsigmask(&attributes, &defaults)
        sigaddset(&defaults, SIGINT)
        sigaddset(&defaults, SIGQUIT)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        var strings = ([path] + arguments).map { strdup($0) }
        strings.append(nil)
        var variables = actions == nil ? [] : plainEnvironment()
        defer { for string in strings + variables { free(string) } }
        var child: pid_t = 0
        let error =
            variables.isEmpty
            ? posix_spawn(&child, path, actions, &attributes, strings, environ)
            : posix_spawn(&child, path, actions, &attributes, strings, &variables)
        return error == 0 ? .running(child) : .failed(reason(error))
    }

    /// The environment of this process, without colours: the child writes to a pipe.
    private static func plainEnvironment() -> [UnsafeMutablePointer<CChar>?] {
        let name = "SYSTEMD_COLORS="
        var variables: [UnsafeMutablePointer<CChar>?] = [strdup(name + "0")]
        var entry = environ
        while let variable = entry.pointee {
            if strncmp(variable, name, name.utf8.count) != 0 { variables.append(strdup(variable)) }
            entry += 1
        }
        variables.append(nil)
        return variables
    }

    /// Reads two pipes until both are closed.
    private static func collect(_ output: Int32, _ errorPipe: Int32) -> ([UInt8], [UInt8]) {
        var pipes = [(descriptor: output, bytes: [UInt8]()), (descriptor: errorPipe, bytes: [UInt8]())]
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var open = 2
        while open > 0 {
            // poll(2) ignores negative descriptors.
            var entries = pipes.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
            guard poll(&entries, nfds_t(entries.count), -1) >= 0 || errno == EINTR else { break }
            for index in pipes.indices where entries[index].revents != 0 {
                let count = read(pipes[index].descriptor, &buffer, buffer.count)
                if count > 0 {
                    let rest = max(0, mostBytes - pipes[index].bytes.count)
                    pipes[index].bytes += buffer[..<min(count, rest)]
                } else if count == 0 || errno != EINTR {
                    pipes[index].descriptor = -1
                    open -= 1
                }
            }
        }
        return (pipes[0].bytes, pipes[1].bytes)
    }

    private static func status(of child: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 {
            guard errno == EINTR else { return 127 }
        }
        // The parts of the status, as wait(2) defines them: the signal that ended the child, or its exit status.
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    private static func reason(_ error: Int32) -> String {
        strerror(error).map { String(cString: $0) } ?? "error \(error)"
    }
}
