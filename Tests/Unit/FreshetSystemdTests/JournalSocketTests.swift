import CLinux
import Glibc
import TestSupport
import Testing

@testable import FreshetSystemd

@Suite("The journal socket")
struct JournalSocketTests {
    private static func report(_ lost: Int) -> [String] { ["LOST=\(lost)"] }

    @Test("a field is a line, or, with a line break in its value, has its length before the value")
    func protocolForm() {
        #expect(JournalSocket.entry(of: ["A=b=c", "D="]) == Array("A=b=c\nD=\n".utf8))
        #expect(
            JournalSocket.entry(of: ["A=b\nc"]) == Array("A\n".utf8) + [3, 0, 0, 0, 0, 0, 0, 0] + Array("b\nc\n".utf8))
    }

    @Test("an entry is one datagram, or a sealed file if it is too long for a datagram")
    func carriers() throws {
        let journal = try Receiver()
        let socket = try #require(JournalSocket(path: journal.path, lossReport: Self.report))
        socket.send(["MESSAGE=short"])
        #expect(try journal.receive() == "MESSAGE=short\n")
        let long = "MESSAGE=" + String(repeating: "x", count: 16 << 20)
        socket.send([long])
        #expect(try journal.receive() == long + "\n")
        #expect(journal.lastWasSealed)
    }

    @Test("sending does not wait for a slow journal, which gets all entries in order, and then the thread ends")
    func slow() throws {
        let journal = try Receiver()
        let socket = try #require(JournalSocket(path: journal.path, lossReport: Self.report))
        // More than a socket's queue holds (net.unix.max_dgram_qlen), less than is kept.
        let count = 5_000
        for number in 0..<count { socket.send(["N=\(number)"]) }
        for number in 0..<count { #expect(try journal.receive() == "N=\(number)\n") }
        socket.flush(for: .seconds(60))
        socket.send(["N=last"])
        #expect(try journal.receive() == "N=last\n")
    }

    @Test("entries beyond the limit are lost, and their number is reported later")
    func limit() throws {
        let journal = try Receiver()
        let socket = try #require(JournalSocket(path: journal.path, lossReport: Self.report))
        let entry = "X=" + String(repeating: "x", count: 64 << 10)
        let count = 200
        for _ in 0..<count { socket.send([entry]) }
        var received = 0
        var text = try journal.receive()
        while text == entry + "\n" {
            received += 1
            text = try journal.receive()
        }
        #expect(text == "LOST=\(count - received)\n")
        // The queue of the socket holds some more.
        #expect(received >= JournalSocket.backlogLimit / (entry.utf8.count + 1))
        #expect(received < count)
    }

    @Test("without a journal entries are counted; a journal that returns gets the number of lost entries")
    func restart() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path("socket")
        var journal = try Receiver(path: path)
        let socket = try #require(JournalSocket(path: path, lossReport: Self.report))
        journal.end()
        socket.send(["N=1"])
        socket.send(["N=2"])
        journal = try Receiver(path: path)
        socket.send(["N=3"])
        #expect(try journal.receive() == "N=3\n")
        #expect(try journal.receive() == "LOST=2\n")
    }

    @Test("a journal that ends while the thread waits for it blocks nothing")
    func gone() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path("socket")
        var journal = try Receiver(path: path)
        let socket = try #require(JournalSocket(path: path, lossReport: Self.report))
        for number in 0..<5_000 { socket.send(["N=\(number)"]) }
        journal.end()
        socket.flush(for: .seconds(60))
        journal = try Receiver(path: path)
        socket.send(["N=again"])
        #expect(try journal.receive() == "N=again\n")
        #expect(try journal.receive().hasPrefix("LOST="))
    }
}

/// A substitute for journald.
private final class Receiver {
    let path: String
    private let directory: TemporaryDirectory?
    private var descriptor: Int32
    private(set) var lastWasSealed = false

    init(path: String? = nil) throws {
        directory = path == nil ? try TemporaryDirectory() : nil
        self.path = try #require(path ?? directory?.path("socket"))
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let address = try #require(SocketAddress(notifySocket: self.path))
        let result = address.withPointer { bind(descriptor, $0, $1) }
        try #require(result == 0)
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { if descriptor >= 0 { end() } }

    func end() {
        close(descriptor)
        descriptor = -1
        unlink(path)
    }

    /// The next entry, as a datagram or as a file.
    func receive() throws -> String {
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        var control = [UInt8](repeating: 0, count: 64)
        let (count, controlCount) = bytes.withUnsafeMutableBytes { buffer in
            control.withUnsafeMutableBytes { control in
                var vector = iovec(iov_base: buffer.baseAddress, iov_len: buffer.count)
                return withUnsafeMutablePointer(to: &vector) { vector in
                    var message = msghdr()
                    message.msg_iov = vector
                    message.msg_iovlen = 1
                    message.msg_control = control.baseAddress
                    message.msg_controllen = control.count
                    let count = recvmsg(descriptor, &message, Int32(MSG_CMSG_CLOEXEC))
                    return (count, message.msg_controllen)
                }
            }
        }
        try #require(count >= 0, "no entry arrived")
        guard controlCount > 0 else { return String(decoding: bytes[..<count], as: UTF8.self) }
        let file = control.withUnsafeBytes {
            $0.load(fromByteOffset: MemoryLayout<cmsghdr>.size, as: Int32.self)
        }
        defer { close(file) }
        lastWasSealed = fcntl(file, Int32(FRESHET_GET_SEALS)) == Int32(FRESHET_ALL_SEALS)
        var status = stat()
        try #require(fstat(file, &status) == 0)
        bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        try #require(pread(file, &bytes, bytes.count, 0) == bytes.count)
        return String(decoding: bytes, as: UTF8.self)
    }
}
