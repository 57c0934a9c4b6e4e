import FreshetEventLoop
import Glibc

/// A terminal in full-screen mode: without echo, key by key, on the alternate screen, so that the previous content is
/// back afterwards.
///
/// A signal that would end or stop the program is an event, so that the terminal is restored first. After SIGKILL,
/// `reset` restores the terminal.
final class FullScreen {
    enum Event: Hashable {
        case keys([TopKey])
        /// The size has changed, or another program may have drawn.
        case changed
        /// These other descriptors are readable.
        case others([Int32])
        /// There was no event in time.
        case timeout
        /// This signal ends the program.
        case ended(Int32)
        /// The terminal is gone.
        case gone
    }

    private let signals: SignalQueue
    private let before: termios
    private var reader = TopKeyReader()
    private var isEntered = false
    /// The longest time for the rest of a key's sequence, on a slow line.
    private static let sequenceMilliseconds: Int32 = 60

    /// Nil if standard input or standard output is not a terminal.
    init?() {
        var attributes = termios()
        guard isatty(STDOUT_FILENO) == 1, tcgetattr(STDIN_FILENO, &attributes) == 0,
            let signals = try? SignalQueue([SIGWINCH, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT])
        else { return nil }
        before = attributes
        self.signals = signals
    }

    deinit { leave() }

    /// The terminal's columns and rows.
    var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Enters full-screen mode.
    func enter() {
        var raw = before
        // Keys one by one, without echo; Ctrl-C and Ctrl-Z keep their meaning.
        raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
        // No flow control by Ctrl-S and Ctrl-Q.
        raw.c_iflag &= ~tcflag_t(IXON | ICRNL)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &raw)
        // The alternate screen, entered once because that saves the cursor; then no cursor and no line wrap.
        if !isEntered { _ = write("\u{1B}[?1049h") }
        isEntered = true
        _ = write("\u{1B}[?25l\u{1B}[?7l")
        clear()
    }

    /// Clears the screen.
    func clear() { _ = write("\u{1B}[0m\u{1B}[H\u{1B}[2J") }

    /// Restores the terminal.
    func leave() {
        guard isEntered else { return }
        isEntered = false
        // On a terminal without an alternate screen, further output must begin below.
        _ = write("\u{1B}[0m\u{1B}[\(size.rows);1H\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l")
        var attributes = before
        tcsetattr(STDIN_FILENO, TCSADRAIN, &attributes)
    }

    /// Draws all lines, from the top; false if the terminal is gone.
    func draw(_ lines: [String]) -> Bool {
        // One write, so that no half-drawn screen is visible.
        var text = "\u{1B}[H"
        for (index, line) in lines.enumerated() {
            // Erase before the text, not after it: after a line of full width, the cursor is still on its last
            // character.
            let erase = index == lines.count - 1 ? "\u{1B}[J" : "\u{1B}[K"
            text += (index > 0 ? "\r\n" : "") + "\(erase)\(line)\u{1B}[0m"
        }
        return write(text)
    }

    /// Delivers a signal to this process, with its default action.
    func deliver(_ signal: Int32) { signals.deliver(signal) }

    /// Waits for a key, a signal, or another descriptor.
    ///
    /// - Parameter others: the other descriptors.
    func next(beside others: [Int32], milliseconds: Int32) -> Event {
        var entries = ([signals.rawValue, STDIN_FILENO] + others).map {
            pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
        }
        let timeout = reader.isIncomplete ? min(milliseconds, Self.sequenceMilliseconds) : milliseconds
        let count = poll(&entries, nfds_t(entries.count), max(0, timeout))
        guard count != 0 else { return reader.isIncomplete ? .keys(reader.flush()) : .timeout }
        guard count > 0 else { return .timeout }
        if entries[0].revents != 0, let signal = signals.take() { return event(of: signal) }
        if entries[1].revents != 0 { return readKeys() }
        return .others(entries.dropFirst(2).filter { $0.revents != 0 }.map(\.fd))
    }

    private func readKeys() -> Event {
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = read(STDIN_FILENO, &buffer, buffer.count)
        if count > 0 { return .keys(reader.read(buffer[..<count])) }
        return count < 0 && (errno == EINTR || errno == EAGAIN) ? .timeout : .gone
    }

    private func event(of signal: Int32) -> Event {
        switch signal {
        case SIGWINCH: return .changed
        case SIGCONT:
            // Another program may have used the terminal.
            if isEntered { enter() }
            return .changed
        case SIGTSTP:
            leave()
            signals.deliver(SIGTSTP)
            enter()
            return .changed
        default: return .ended(signal)
        }
    }

    private func write(_ text: String) -> Bool {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EAGAIN {
                var entry = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
                poll(&entry, 1, 1_000)
                if entry.revents & Int16(POLLHUP | POLLERR) != 0 { return false }
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}
