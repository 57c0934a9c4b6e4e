import CLinux
import Glibc

/// A copy of this process (fork(2)) that keeps the present rights, to answer one request after this process has given
/// its own rights up. The copy shares no memory with this process: it sees only the text of the request.
///
/// It ends with its answer, or if this process ends or releases the object before.
package final class RetainedRights: Sendable {
    /// The longest request and the longest answer, in bytes.
    package static let sizeLimit = 1 << 20

    private let socket: OwnedDescriptor
    private let process: pid_t

    /// Makes the copy. Call it before any thread starts; nil: the kernel refuses the process.
    ///
    /// - Parameters:
    ///   - timeLimit: The longest time for the answer, in seconds. Then the kernel ends the copy.
    ///   - answer: Runs in the copy, and returns the answer to a request.
    package init?(timeLimit: UInt32, answer: (String) -> String) {
        guard let (own, other) = try? SocketPair.make() else { return nil }
        process = freshet_fork()
        guard process >= 0 else { return nil }
        socket = own
        guard process == 0 else { return }
        // The copy of this process's end would hide the end of the request.
        close(own.rawValue)
        let request = Self.text(from: other.rawValue)
        if !request.isEmpty {
            // The process may have inherited another disposition, or a mask.
            signal(SIGALRM, SIG_DFL)
            var alarms = sigset_t()
            sigemptyset(&alarms)
            sigaddset(&alarms, SIGALRM)
            sigprocmask(SIG_UNBLOCK, &alarms, nil)
            alarm(timeLimit)
            Self.send(answer(request), to: other.rawValue)
        }
        _exit(0)
    }

    /// Sends the request and waits for the answer; nil: there was none in time. Blocks. Call it once.
    package func answer(to request: String) -> String? {
        Self.send(request, to: socket.rawValue)
        shutdown(socket.rawValue, Int32(SHUT_WR))
        let answer = Self.text(from: socket.rawValue)
        while waitpid(process, nil, 0) < 0, errno == EINTR {}
        return answer.isEmpty ? nil : answer
    }

    private static func send(_ text: String, to descriptor: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(truncatingIfNeeded: MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Everything until the other side has sent all.
    private static func text(from descriptor: Int32) -> String {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4_096)
        while bytes.count <= sizeLimit {
            let count = read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += piece[..<count]
        }
        return bytes.count <= sizeLimit ? String(decoding: bytes, as: UTF8.self) : ""
    }
}
