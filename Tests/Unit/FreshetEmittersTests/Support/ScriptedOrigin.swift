import Glibc
import Synchronization
import TestSupport

/// An HTTP/1.1 origin on a free port of loopback that runs a test's script. One thread accepts connections, and one
/// thread serves each connection. The origin does not use delays, and every wait has a timeout.
final class ScriptedOrigin: Sendable {
    struct Request: Hashable, Sendable {
        var method: String
        var target: String
        /// Names in lower case.
        var headers: [String: String]
        /// As long as `Content-Length` says.
        var body = ""
        /// The number of its connection, from 1.
        var connection: Int
    }

    /// One connection, as a script sees it.
    struct Connection: Sendable {
        fileprivate let descriptor: Int32

        func send(_ text: String) { send(Array(text.utf8)) }

        /// Returns whether all bytes were sent: the client has not closed its end.
        @discardableResult
        func send(_ bytes: [UInt8]) -> Bool {
            var sent = 0
            while sent < bytes.count {
                let count = bytes.withUnsafeBytes { buffer in
                    Glibc.send(
                        descriptor, buffer.baseAddress?.advanced(by: sent), buffer.count - sent, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return false }
                sent += count
            }
            return true
        }

        /// Sends a complete answer with its length.
        func answer(_ status: String, headers: [String] = [], body: [UInt8] = []) {
            let fields = (headers + ["Content-Length: \(body.count)"]).map { "\($0)\r\n" }.joined()
            send(Array("HTTP/1.1 \(status)\r\n\(fields)\r\n".utf8) + body)
        }

        func answer(_ status: String, headers: [String] = [], body: String) {
            answer(status, headers: headers, body: Array(body.utf8))
        }

        /// Ends the connection.
        func close() { shutdown(descriptor, Int32(SHUT_RDWR)) }

        /// Blocks until the client has closed its end. Returns false after a timeout, which only a failing test
        /// reaches.
        func clientCloses() -> Bool {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                var poller = pollfd(descriptor: descriptor)
                guard poll(&poller, 1, testTimeoutMilliseconds) == 1 else { return false }
                if recv(descriptor, &buffer, buffer.count, 0) <= 0 { return true }
            }
        }
    }

    typealias Script = @Sendable (Request, Connection) -> Void

    let port: UInt16
    private let listener: Int32
    private let log = Log()

    private final class Log: Sendable {
        let requests = Mutex<[Request]>([])
    }

    /// All requests so far.
    var requests: [Request] { log.requests.withLock { $0 } }

    /// - Parameter path: where to make a socket instead of listening on loopback.
    init(path: String? = nil, _ script: @escaping Script) throws {
        guard path == nil else {
            port = 0
            listener = try Self.listen(at: path ?? "")
            accept(script)
            return
        }
        let loopback = try LoopbackListener()
        listener = loopback.descriptor
        port = loopback.port
        accept(script)
    }

    private static func listen(at path: String) throws -> Int32 {
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let isListening = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 && Glibc.listen(listener, 64) == 0
            }
        }
        guard isListening else { throw NoListener(errno: errno) }
        return listener
    }

    private func accept(_ script: @escaping Script) {
        let (listener, log) = (listener, log)
        startThread {
            var number = 0
            while true {
                let descriptor = Glibc.accept(listener, nil, nil)
                guard descriptor >= 0 else { break }
                limitSends(on: descriptor)
                number += 1
                let connection = number
                startThread {
                    Self.serve(descriptor) { request in
                        var request = request
                        request.connection = connection
                        log.requests.withLock { $0.append(request) }
                        script(request, Connection(descriptor: descriptor))
                    }
                }
            }
            Glibc.close(listener)
        }
    }

    struct NoListener: Error { var errno: Int32 }

    /// Wakes the accepting thread, which then ends.
    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    func url(_ path: String = "/") -> String { "http://127.0.0.1:\(port)\(path)" }

    private static func serve(_ descriptor: Int32, _ handle: (Request) -> Void) {
        defer { Glibc.close(descriptor) }
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let head = received.firstRange(of: end) {
                let text = String(decoding: received[..<head.lowerBound], as: UTF8.self)
                var request = parse(text)
                let length = request.headers["content-length"].flatMap { Int($0) } ?? 0
                if received.count - head.upperBound >= length {
                    request.body = String(decoding: received[head.upperBound...].prefix(length), as: UTF8.self)
                    received.removeSubrange(..<(head.upperBound + length))
                    handle(request)
                    continue
                }
            }
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            received += buffer[..<count]
        }
    }

    private static func parse(_ head: String) -> Request {
        // "\r\n" is one Character.
        let lines = head.split(separator: "\r\n")
        let words = lines.first?.split(separator: " ").map { String($0) } ?? []
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
        }
        return Request(
            method: words.first ?? "", target: words.dropFirst().first ?? "", headers: headers, connection: 0)
    }
}

extension pollfd {
    init(descriptor: Int32) { self.init(fd: descriptor, events: Int16(POLLIN), revents: 0) }
}

private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

/// Runs blocking code of a test on another thread.
func startThread(_ body: @escaping @Sendable () -> Void) {
    var thread = pthread_t()
    let argument = Unmanaged.passRetained(ThreadBody(body)).toOpaque()
    let result = pthread_create(
        &thread, nil,
        { argument in
            guard let argument else { return nil }
            Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().run()
            return nil
        }, argument)
    if result == 0 { pthread_detach(thread) }
}
