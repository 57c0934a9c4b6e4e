import FreshetEventLoop
import Glibc

/// A terminal that is drawn on as a whole: without echo, key by key, on a screen of its own, so that what it showed before
/// is there again afterwards.
///
/// What would end or stop the program is heard as an event, so that the terminal is left first. Nothing can be done for a
/// SIGKILL: `reset` makes such a terminal usable again.
final class FullScreen {
    enum Event: Hashable {
        case keys([TopKey])
        /// It has another size, or may show something else.
        case changed
        /// These descriptors beside it are readable.
        case others([Int32])
        /// Nothing happened in time.
        case timeout
        /// This signal wants the program to end.
        case ended(Int32)
        /// The terminal is gone.
        case gone
    }

    private let signals: SignalQueue
    private let before: termios
    private var reader = TopKeyReader()
    private var isEntered = false
    /// How long the rest of a key's sequence may take, over a slow line.
    private static let sequenceMilliseconds: Int32 = 60

    /// Nil: standard input or standard output is no terminal.
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

    /// Takes the terminal.
    func enter() {
        var raw = before
        // Keys one by one and unseen; Ctrl-C and Ctrl-Z still mean what they mean.
        raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
        // Ctrl-S and Ctrl-Q are no use to a screen that is drawn anew.
        raw.c_iflag &= ~tcflag_t(IXON | ICRNL)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &raw)
        // Its own screen, which is entered once: the cursor's place is remembered with it. No cursor, no breaking of lines.
        if !isEntered { _ = write("\u{1B}[?1049h") }
        isEntered = true
        _ = write("\u{1B}[?25l\u{1B}[?7l")
        clear()
    }

    /// Empties the screen: what is drawn next is all that is there.
    func clear() { _ = write("\u{1B}[0m\u{1B}[H\u{1B}[2J") }

    /// Leaves the terminal as it was.
    func leave() {
        guard isEntered else { return }
        isEntered = false
        // Where there is no second screen, what follows is to stand below.
        _ = write("\u{1B}[0m\u{1B}[\(size.rows);1H\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l")
        var attributes = before
        tcsetattr(STDIN_FILENO, TCSADRAIN, &attributes)
    }

    /// Draws all lines, from the top; false: the terminal is gone.
    func draw(_ lines: [String]) -> Bool {
        // In one go, so that nobody sees half of it.
        var text = "\u{1B}[H"
        for (index, line) in lines.enumerated() {
            // What was there is erased before and not behind: after a line of full width the cursor still is on its last
            // character.
            let erase = index == lines.count - 1 ? "\u{1B}[J" : "\u{1B}[K"
            text += (index > 0 ? "\r\n" : "") + "\(erase)\(line)\u{1B}[0m"
        }
        return write(text)
    }

    /// Does what a signal wants: ends the program, if that is what it does.
    func deliver(_ signal: Int32) { signals.deliver(signal) }

    /// Waits for a key, a signal, or something beside.
    ///
    /// - Parameter others: descriptors beside it.
    func next(beside others: [Int32], milliseconds: Int32) -> Event {
        var entries = ([signals.rawValue, STDIN_FILENO] + others).map {
            pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
        }
        let patience = reader.isIncomplete ? min(milliseconds, Self.sequenceMilliseconds) : milliseconds
        let count = poll(&entries, nfds_t(entries.count), max(0, patience))
        guard count != 0 else { return reader.isIncomplete ? .keys(reader.flush()) : .timeout }
        guard count > 0 else { return .timeout }
        if entries[0].revents != 0, let signal = signals.take() { return heard(signal) }
        if entries[1].revents != 0 { return readKeys() }
        return .others(entries.dropFirst(2).filter { $0.revents != 0 }.map(\.fd))
    }

    private func readKeys() -> Event {
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = read(STDIN_FILENO, &buffer, buffer.count)
        if count > 0 { return .keys(reader.read(buffer[..<count])) }
        return count < 0 && (errno == EINTR || errno == EAGAIN) ? .timeout : .gone
    }

    private func heard(_ signal: Int32) -> Event {
        switch signal {
        case SIGWINCH: return .changed
        case SIGCONT:
            // Somebody else may have had the terminal meanwhile.
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
