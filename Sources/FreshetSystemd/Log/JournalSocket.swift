import CLinux
import Glibc
import Synchronization

/// A socket to journald, which gets datagrams of fields (systemd, "Native Journal Protocol").
///
/// Sending never waits for the journal; sd_journal_sendv(3) would block the logging thread while journald accepts
/// nothing. Entries that cannot be sent immediately are kept, in order, up to ``backlogLimit``. A thread sends them; it
/// lives as long as there is something to send. Further entries are dropped and counted, and so are entries while no
/// journald listens. The count is logged when the journal accepts entries again. Each datagram has the address, so that
/// a restarted journald is found.
///
/// It may be used from any thread.
final class JournalSocket: Sendable {
    /// The maximum number of bytes that are kept while the journal accepts none.
    static let backlogLimit = 4 << 20
    /// The socket of journald.
    static let path = "/run/systemd/journal/socket"

    private struct State {
        /// Kept entries, in their order.
        var backlog: [[UInt8]] = []
        /// The size of the backlog and of the entries that the thread has taken from it.
        var keptBytes = 0
        /// The number of lost entries that were not reported yet.
        var lost = 0
        /// Whether the thread is running.
        var isDraining = false
    }

    private enum Outcome {
        case sent
        /// The journal does not accept entries now.
        case full
        /// No journald listens, or it refuses the entry: waiting would not help.
        case failed
    }

    private let state = Mutex(State())
    private let descriptor: Int32
    private let address: SocketAddress
    private let lossReport: @Sendable (_ lost: Int) -> [String]

    /// Opens a socket; nil if that fails.
    ///
    /// - Parameters:
    ///   - path: The socket of journald.
    ///   - lossReport: Makes the entry that reports how many were lost.
    init?(path: String = JournalSocket.path, lossReport: @escaping @Sendable (_ lost: Int) -> [String]) {
        guard let address = SocketAddress(notifySocket: path) else { return nil }
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        self.address = address
        self.lossReport = lossReport
        // As large as the system allows (net.core.wmem_max), because unread datagrams count.
        var size = Int32(8 << 20)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }

    deinit { close(descriptor) }

    /// Sends an entry, or keeps it until the journal accepts it.
    ///
    /// - Parameter fields: Each is `NAME=value`; a value may contain any byte.
    func send(_ fields: [String]) {
        let entry = Self.entry(of: fields)
        let startsThread = state.withLock { state in
            // An entry must not overtake kept entries.
            if !state.isDraining {
                switch put(entry, waits: false) {
                case .sent:
                    if state.lost > 0, put(Self.entry(of: lossReport(state.lost)), waits: false) == .sent {
                        state.lost = 0
                    }
                    return false
                case .failed:
                    state.lost += 1
                    return false
                case .full: break
                }
            }
            guard state.keptBytes + entry.count <= Self.backlogLimit else {
                state.lost += 1
                return false
            }
            state.backlog.append(entry)
            state.keptBytes += entry.count
            defer { state.isDraining = true }
            return !state.isDraining
        }
        if startsThread, !startThread() { drop() }
    }

    /// Waits until all kept entries were sent, at most this long: for a program that is about to end.
    func flush(for limit: Duration) {
        let deadline = ContinuousClock.now + limit
        while state.withLock({ $0.isDraining }), ContinuousClock.now < deadline { poll(nil, 0, 5) }
    }

    // MARK: The thread

    private func startThread() -> Bool {
        let socket = Unmanaged.passRetained(self)
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<JournalSocket>.fromOpaque(argument).takeRetainedValue().drain()
                return nil
            }, socket.toOpaque())
        guard result == 0 else {
            socket.release()
            return false
        }
        pthread_setname_np(thread, "journal")
        pthread_detach(thread)
        return true
    }

    /// Sends kept entries, and waits for the journal if necessary.
    private func drain() {
        while true {
            let (entries, lost) = state.withLock { state in
                let taken = (state.backlog, state.lost)
                state.backlog = []
                state.lost = 0
                state.isDraining = !taken.0.isEmpty || taken.1 > 0
                return taken
            }
            if entries.isEmpty, lost == 0 { return }
            var failed = 0
            for entry in entries where put(entry, waits: true) != .sent { failed += 1 }
            if lost > 0, put(Self.entry(of: lossReport(lost)), waits: true) != .sent { failed += lost }
            let size = entries.reduce(0) { $0 + $1.count }
            let isOver = state.withLock { state in
                state.keptBytes -= size
                state.lost += failed
                // No journald listens: the next entry starts a new attempt.
                if failed > 0, state.backlog.isEmpty { state.isDraining = false }
                return !state.isDraining
            }
            if isOver { return }
        }
    }

    /// No thread can be started: the kept entries are lost.
    private func drop() {
        state.withLock { state in
            state.lost += state.backlog.count
            state.backlog = []
            state.keptBytes = 0
            state.isDraining = false
        }
    }

    // MARK: The protocol

    /// The fields in the journal's format: `NAME=value` and a line break. If the value contains a line break: the name,
    /// a line break, the value's length as 64 bits, little-endian, the value, and a line break.
    static func entry(of fields: [String]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(fields.reduce(0) { $0 + $1.utf8.count + 1 })
        for field in fields {
            let text = field.utf8
            if text.contains(UInt8(ascii: "\n")), let equals = text.firstIndex(of: UInt8(ascii: "=")) {
                let value = text[text.index(after: equals)...]
                bytes += text[..<equals]
                bytes.append(UInt8(ascii: "\n"))
                withUnsafeBytes(of: UInt64(value.count).littleEndian) { bytes += $0 }
                bytes += value
            } else {
                bytes += text
            }
            bytes.append(UInt8(ascii: "\n"))
        }
        return bytes
    }

    private func put(_ entry: [UInt8], waits: Bool) -> Outcome {
        let flags = Int32(MSG_NOSIGNAL) | (waits ? 0 : Int32(MSG_DONTWAIT))
        while true {
            let count = address.withPointer { sendto(descriptor, entry, entry.count, flags, $0, $1) }
            if count >= 0 { return .sent }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .full
            case EMSGSIZE, ENOBUFS: return putFile(entry, flags)
            default: return .failed
            }
        }
    }

    /// An entry that is too large for a datagram is sent as a sealed file in memory.
    private func putFile(_ entry: [UInt8], _ flags: Int32) -> Outcome {
        let file = memfd_create("journal-entry", MFD_CLOEXEC | MFD_ALLOW_SEALING)
        guard file >= 0 else { return .failed }
        defer { close(file) }
        var written = 0
        while written < entry.count {
            let count = entry.withUnsafeBytes {
                write(file, $0.baseAddress.map { $0 + written }, entry.count - written)
            }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return .failed }
            written += count
        }
        guard fcntl(file, Int32(FRESHET_ADD_SEALS), Int32(FRESHET_ALL_SEALS)) == 0 else {
            return .failed
        }
        while true {
            if sendDescriptor(file, flags) { return .sent }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .full
            default: return .failed
            }
        }
    }

    /// One message of SCM_RIGHTS (cmsg(3), unix(7)) without data.
    private func sendDescriptor(_ file: Int32, _ flags: Int32) -> Bool {
        // CMSG_SPACE(sizeof(int)): the header, and the descriptor padded to the header's alignment.
        let headerSize = MemoryLayout<cmsghdr>.size
        let size = headerSize + MemoryLayout<cmsghdr>.alignment
        return withUnsafeTemporaryAllocation(byteCount: size, alignment: MemoryLayout<cmsghdr>.alignment) { control in
            control.initializeMemory(as: UInt8.self, repeating: 0)
            var header = cmsghdr()
            header.cmsg_len = headerSize + MemoryLayout<Int32>.size
            header.cmsg_level = SOL_SOCKET
            header.cmsg_type = Int32(SCM_RIGHTS)
            control.storeBytes(of: header, as: cmsghdr.self)
            control.storeBytes(of: file, toByteOffset: headerSize, as: Int32.self)
            return address.withPointer { pointer, length in
                var message = msghdr()
                message.msg_name = UnsafeMutableRawPointer(mutating: pointer)
                message.msg_namelen = length
                message.msg_control = control.baseAddress
                message.msg_controllen = size
                return sendmsg(descriptor, &message, flags) >= 0
            }
        }
    }
}
