import FreshetEventLoop
import Glibc

extension CommandContext {
    /// The streams, the clock and the environment of this process.
    package static func ofThisProcess() -> CommandContext {
        // Before anything is opened: a closed standard stream gets /dev/null.
        StandardDescriptors.occupy()
        let isTerminal = isatty(STDOUT_FILENO) == 1
        let environment = ProcessEnvironment.variables()
        var outputFailure: String?
        let write = { (bytes: ArraySlice<UInt8>) -> Bool in
            // After a failed write, further output would hide the gap.
            guard outputFailure == nil else { return false }
            if writeAll(bytes, to: STDOUT_FILENO) { return true }
            outputFailure = strerror(errno).map { String(cString: $0) } ?? "error \(errno)"
            return false
        }
        return CommandContext(
            environment: environment, user: geteuid(),
            output: { text in _ = write(Array(text.utf8)[...]) },
            outputBytes: write, outputDescriptor: STDOUT_FILENO, outputFailure: { outputFailure },
            printError: { text in _ = writeAll(Array(text.utf8)[...], to: STDERR_FILENO) },
            isTerminal: isTerminal,
            columns: isTerminal ? columns(of: STDOUT_FILENO, environment) : nil,
            // A serial console is a terminal without a size.
            errorColumns: isatty(STDERR_FILENO) == 1 ? columns(of: STDERR_FILENO, environment) ?? 80 : nil,
            answer: isatty(STDIN_FILENO) == 1 ? { readAnswer() } : nil,
            now: {
                var time = timespec()
                clock_gettime(CLOCK_REALTIME, &time)
                return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
            },
            timeZone: { instant in
                var seconds = time_t(instant / 1_000_000)
                var parts = tm()
                guard localtime_r(&seconds, &parts) != nil, let name = parts.tm_zone else { return (0, "UTC") }
                return (Int64(parts.tm_gmtoff), String(cString: name))
            },
            exists: { access($0, F_OK) == 0 },
            isExecutable: { access($0, X_OK) == 0 },
            ownPath: ownPath(),
            execute: { path, arguments in
                var strings = ([path] + arguments).map { strdup($0) }
                strings.append(nil)
                execv(path, strings)
                let reason = strerror(errno).map { String(cString: $0) } ?? "error \(errno)"
                for string in strings { free(string) }
                return reason
            },
            child: { path, arguments, streams in ProgramRunner.run(path, arguments, streams) })
    }

    /// The width of a terminal. `COLUMNS` has precedence, as in systemd's tools.
    private static func columns(of terminal: Int32, _ environment: [String: String]) -> Int? {
        if let text = environment["COLUMNS"], let columns = Int(text), columns > 0 { return columns }
        var size = winsize()
        guard ioctl(terminal, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Reads a line from the terminal. Nil at its end, or after a signal that ends this program, such as Ctrl-C: the
    /// caller can still print what happens to the work in progress.
    private static func readAnswer() -> String? {
        guard let signals = try? SignalQueue([SIGINT, SIGTERM, SIGHUP]) else { return readLine() }
        var entries = [
            pollfd(fd: signals.rawValue, events: Int16(POLLIN), revents: 0),
            pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
        ]
        while poll(&entries, nfds_t(entries.count), -1) < 0 && errno == EINTR {}
        // A signal that stays in the queue would end this program when it is unblocked.
        let isEnding = entries[0].revents != 0 && signals.take() != nil
        if !isEnding, let line = readLine() { return line }
        // The cursor is still behind the question.
        _ = writeAll([UInt8(ascii: "\n")], to: STDERR_FILENO)
        return nil
    }

    private static func ownPath() -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count].map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
    }

    private static func writeAll(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // Another process that shares the stream made it non-blocking.
                var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&entry, 1, -1)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}
