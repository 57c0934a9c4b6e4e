import Glibc

/// A program that is run and awaited, while nothing else is done.
enum ChildProcess {
    /// More than that of what it writes is not kept: it is for a person, or an answer of `freshetd --check`.
    private static let mostBytes = 64 << 20

    static func run(_ path: String, _ arguments: [String], _ streams: ChildStreams) -> ChildResult {
        switch streams {
        case .shared: runShared(path, arguments)
        case .collected: runCollected(path, arguments)
        }
    }

    /// As system(3) has it: what the terminal's keys send is the child's meanwhile.
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
        var talk: [Int32] = [-1, -1]
        guard pipe(&output) == 0 else { return .failed(reason(errno)) }
        guard pipe(&talk) == 0 else {
            let why = reason(errno)
            output.forEach { close($0) }
            return .failed(why)
        }
        // This program has one thread, so that no other child comes between.
        for descriptor in output + talk { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, talk[1], STDERR_FILENO)
        let spawned = spawn(path, arguments, &actions)
        close(output[1])
        close(talk[1])
        defer {
            close(output[0])
            close(talk[0])
        }
        return spawned.map(
            running: { child in
                let (written, said) = collect(output[0], talk[0])
                return .ended(
                    status: status(of: child), output: String(decoding: written, as: UTF8.self),
                    talk: String(decoding: said, as: UTF8.self))
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
        // It begins as a shell would have it: with what this process blocks, or ignores while it waits, it has no business.
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

    /// The environment for who writes into a pipe: colours are this program's business.
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

    /// What comes through two pipes, until both are closed.
    private static func collect(_ output: Int32, _ talk: Int32) -> ([UInt8], [UInt8]) {
        var pipes = [(descriptor: output, bytes: [UInt8]()), (descriptor: talk, bytes: [UInt8]())]
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var open = 2
        while open > 0 {
            // poll(2) passes over what is -1.
            var entries = pipes.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
            guard poll(&entries, nfds_t(entries.count), -1) >= 0 || errno == EINTR else { break }
            for index in pipes.indices where entries[index].revents != 0 {
                let count = read(pipes[index].descriptor, &buffer, buffer.count)
                if count > 0 {
                    let room = max(0, mostBytes - pipes[index].bytes.count)
                    pipes[index].bytes += buffer[..<min(count, room)]
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
        // The parts of wait(2): the signal that ended it, or what it ended with.
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }

    private static func reason(_ error: Int32) -> String {
        strerror(error).map { String(cString: $0) } ?? "error \(error)"
    }
}
