public import FreshetEventLoop
public import FreshetSignals
import Glibc

/// SIGHUP, by its sender.
///
/// A process that sends SIGHUP (an administrator's, or `systemctl reload`) requests a reload. The kernel sends it when
/// the controlling terminal of the program is closed: the program should end. Block the signal first, at the start of
/// `main` (`SignalDescriptor.block(_:)`).
public final class HangupSource: Sendable {
    /// The name of ``terminalClosed`` among the causes of a merged signal.
    public static let terminalClosedName = "terminal-closed"

    private let requests = SignalSource("reload")
    private let terminal = SignalSource(terminalClosedName)
    let current: CurrentValue<HangupFact>
    private let descriptor: SignalDescriptor

    public init(_ loop: EventLoop) throws(SystemCallError) {
        let current = CurrentValue(HangupFact(obstacle: Self.isBlocked == false ? HangupFact.notBlocked : nil))
        self.current = current
        descriptor = try SignalDescriptor(loop, [SIGHUP]) { [requests, terminal] arrival in
            current.update { $0.take(arrival.isFromKernel, at: .now) }
            Self.notify(arrival.sender, isFromKernel: arrival.isFromKernel, requests: requests, terminal: terminal)
        }
    }

    /// The current fact.
    public var fact: HangupFact { current.value }

    /// The current fact, then each change; a slow reader gets the newest.
    public var facts: some AsyncSequence<HangupFact, Never> & Sendable { current }

    /// Whether the process's first thread blocks SIGHUP (proc(5)); then the threads that it started do so, too. The
    /// runtime's own threads always block it, so the caller's mask would not show this. Nil: it is unknown.
    private static var isBlocked: Bool? {
        let descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 8_192)
        let count = read(descriptor, &buffer, buffer.count)
        return isBlocked(in: String(decoding: buffer.prefix(max(0, count)), as: UTF8.self))
    }

    static func isBlocked(in status: String) -> Bool? {
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("SigBlk:") }),
            let mask = UInt64(line.dropFirst("SigBlk:".count).drop { $0 == "\t" || $0 == " " }, radix: 16)
        else { return nil }
        return mask & 1 << (UInt64(SIGHUP) - 1) != 0
    }

    /// A reload was requested. Read the configuration again, then fire ``StandardSignals/reload``.
    public var reloadRequested: Signal { requests.signal }

    /// The controlling terminal was closed: end the program.
    public var terminalClosed: Signal { terminal.signal }

    static func notify(_ sender: Int32, isFromKernel: Bool, requests: SignalSource, terminal: SignalSource) {
        if isFromKernel {
            terminal.fire("the terminal was closed")
        } else {
            requests.fire("SIGHUP from process \(sender)")
        }
    }
}
