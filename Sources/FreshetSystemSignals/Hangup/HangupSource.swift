public import FreshetEventLoop
public import FreshetSignals
import Glibc

/// SIGHUP, told apart by who sent it.
///
/// A process that sends SIGHUP (an administrator, `systemctl reload`) asks for a reload. The kernel sends it when the
/// terminal that the program was started from is closed: the program is to end. Block the signal first, at the start of
/// `main` (`SignalDescriptor.block(_:)`).
public final class HangupSource: Sendable {
    /// The name of ``terminalClosed`` among the causes of a merged signal.
    public static let terminalClosedName = "terminal-closed"

    private let requests = SignalSource("reload")
    private let terminal = SignalSource(terminalClosedName)
    private let descriptor: SignalDescriptor

    public init(_ loop: EventLoop) throws(SystemCallError) {
        descriptor = try SignalDescriptor(loop, [SIGHUP]) { [requests, terminal] arrival in
            Self.tell(arrival.sender, isFromKernel: arrival.isFromKernel, requests: requests, terminal: terminal)
        }
    }

    /// A reload is asked for. Read the configuration anew, and then fire ``StandardSignals/reload``.
    public var reloadRequested: Signal { requests.signal }

    /// The controlling terminal is gone: end.
    public var terminalClosed: Signal { terminal.signal }

    static func tell(_ sender: Int32, isFromKernel: Bool, requests: SignalSource, terminal: SignalSource) {
        if isFromKernel {
            terminal.fire("the terminal was closed")
        } else {
            requests.fire("SIGHUP from process \(sender)")
        }
    }
}
