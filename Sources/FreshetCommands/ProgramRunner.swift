import Glibc

/// Runs another program and waits for its end.
enum ProgramRunner {
    /// The reason for which a program could not be run.
    struct Failure: Error {
        var reason: String

        init(_ error: Int32) { reason = strerror(error).map { String(cString: $0) } ?? "error \(error)" }
    }

    /// The most bytes that are kept of each output stream; further bytes are read and dropped.
    private static let mostBytes = 64 << 20

    static func run(_ path: String, _ arguments: [String], _ streams: ChildStreams) -> ChildResult {
        do throws(Failure) {
            switch streams {
            case .shared: return .ended(status: try runShared(path, arguments))
            case .collected:
                let ended = try runCollected(path, arguments)
                return .ended(
                    status: ended.status, output: String(decoding: ended.output, as: UTF8.self),
                    errorOutput: String(decoding: ended.errorOutput, as: UTF8.self))
            }
        } catch {
            return .failed(error.reason)
        }
    }

    /// Ignores SIGINT and SIGQUIT while the child runs, as system(3) does: Ctrl-C is for the child.
    private static func runShared(_ path: String, _ arguments: [String]) throws(Failure) -> Int32 {
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
        return status(of: try spawn(path, arguments, nil))
    }

    /// Runs a program with an empty input and collects its output.
    ///
    /// - Parameters:
    ///   - withErrors: whether standard error is collected too; otherwise the child shares that of this program.
    ///   - limit: the most bytes that are kept of each stream.
    static func runCollected(
        _ path: String, _ arguments: [String], withErrors: Bool = true, limit: Int = mostBytes
    ) throws(Failure) -> (status: Int32, output: [UInt8], errorOutput: [UInt8]) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        var readEnds: [Int32] = []
        defer { for end in readEnds { close(end) } }
        let child: pid_t
        do {
            var writeEnds: [Int32] = []
            defer { for end in writeEnds { close(end) } }
            for stream in withErrors ? [STDOUT_FILENO, STDERR_FILENO] : [STDOUT_FILENO] {
                var ends: [Int32] = [-1, -1]
                guard pipe(&ends) == 0 else { throw Failure(errno) }
                // This program has one thread, so no other child can inherit the pipe before the flag is set.
                for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
                readEnds.append(ends[0])
                writeEnds.append(ends[1])
                posix_spawn_file_actions_adddup2(&actions, ends[1], stream)
            }
            child = try spawn(path, arguments, &actions)
        }
        let collected = collect(readEnds, limit)
        return (status(of: child), collected[0], withErrors ? collected[1] : [])
    }

    private static func spawn(
        _ path: String, _ arguments: [String], _ actions: UnsafePointer<posix_spawn_file_actions_t>?
    ) throws(Failure) -> pid_t {
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
        guard error == 0 else { throw Failure(error) }
        return child
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

    /// Reads pipes until all of them are closed.
    private static func collect(_ descriptors: [Int32], _ limit: Int) -> [[UInt8]] {
        var pipes = descriptors.map { (descriptor: $0, bytes: [UInt8]()) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var open = pipes.count
        while open > 0 {
            // poll(2) ignores negative descriptors.
            var entries = pipes.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
            guard poll(&entries, nfds_t(entries.count), -1) >= 0 || errno == EINTR else { break }
            for index in pipes.indices where entries[index].revents != 0 {
                let count = read(pipes[index].descriptor, &buffer, buffer.count)
                if count > 0 {
                    let rest = max(0, limit - pipes[index].bytes.count)
                    pipes[index].bytes += buffer[..<min(count, rest)]
                } else if count == 0 || errno != EINTR {
                    pipes[index].descriptor = -1
                    open -= 1
                }
            }
        }
        return pipes.map(\.bytes)
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
}
