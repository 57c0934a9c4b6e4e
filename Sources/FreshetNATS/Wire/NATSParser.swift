/// Splits the bytes that a server sends into operations. Every byte is untrusted: each length has a limit, and is
/// checked before anything is stored.
///
/// ```swift
/// parser.append(bytes)
/// while let operation = try parser.next() { … }
/// ```
///
/// The cost is linear in the number of bytes, whatever pieces they arrive in. The buffer has at most one operation that
/// is not complete, and the piece that was appended last.
///
/// The lines are those of nats-server: upper-case names, and CR LF at the end.
struct NATSParser: Sendable {
    /// The limits of one operation, in bytes.
    struct Limits: Hashable, Sendable {
        /// The longest line; the server's own limit for clients is 4,096.
        var line = 4_096
        /// The longest line of INFO, which has the addresses of a cluster.
        var info = 64 << 10
        /// The longest block of headers.
        var headers = 64 << 10
        /// The longest payload; longer messages are skipped.
        var payload = 1 << 20
        /// The longest message that is skipped. nats-server accepts at most 64 MiB as `max_payload`.
        var skipped = 65 << 20
    }

    /// The server violated the protocol: the rest of the stream cannot be read.
    struct Violation: Error, Hashable, CustomStringConvertible {
        var description: String
    }

    /// What the next bytes are.
    private enum Stage: Hashable {
        case line
        case message(MessageLine)
        /// The rest of a message that is not stored, with its line end.
        case skipping(MessageLine, rest: Int)
    }

    /// The arguments of MSG or HMSG.
    private struct MessageLine: Hashable {
        var subject: String
        var reply: String?
        var subscription: UInt64
        /// The bytes of the header block; 0: no headers.
        var headers: Int
        /// The bytes of headers and payload together.
        var total: Int
    }

    let limits: Limits
    private var stage = Stage.line
    private var buffer: [UInt8] = []
    /// The index of the first byte that was not taken.
    private var start = 0
    /// The index up to which no line end was found, so that each byte is searched once.
    private var searched = 0

    init(limits: Limits = Limits()) { self.limits = limits }

    /// The bytes that are stored.
    var bufferedBytes: Int { buffer.count - start }

    /// Adds received bytes.
    mutating func append(_ bytes: some Collection<UInt8>) {
        if start > 0 {
            buffer.removeFirst(start)
            searched -= start
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// Takes the next complete operation; nil: no operation is complete.
    mutating func next() throws(Violation) -> ServerOperation? {
        while true {
            switch stage {
            case .line:
                guard let line = try takeLine() else { return nil }
                if let operation = try operation(of: line) { return operation }
            case .message(let line):
                guard bufferedBytes >= line.total + 2 else { return nil }
                return try takeMessage(line)
            case .skipping(let line, let rest):
                let count = min(rest, bufferedBytes)
                take(count)
                guard count == rest else {
                    stage = .skipping(line, rest: rest - count)
                    return nil
                }
                stage = .line
                return .unusable(subject: line.subject, subscription: line.subscription)
            }
        }
    }

    // MARK: Lines

    /// Takes a line without its end; nil: the line is not complete.
    private mutating func takeLine() throws(Violation) -> ArraySlice<UInt8>? {
        let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n"))
        let length = (end ?? buffer.count) - start
        if length > limits.line {
            let isInfo = buffer[start...].starts(with: Self.info)
            guard isInfo, length <= limits.info else { throw Violation(description: "a line is too long") }
        }
        guard let end else {
            searched = buffer.count
            return nil
        }
        guard end > start, buffer[end - 1] == UInt8(ascii: "\r") else {
            throw Violation(description: "a line does not end with CR LF")
        }
        let line = buffer[start..<(end - 1)]
        take(end + 1 - start)
        return line
    }

    /// Removes bytes from the beginning. The memory of a large message is given back.
    private mutating func take(_ count: Int) {
        start += count
        searched = start
        if start == buffer.count {
            buffer.removeAll(keepingCapacity: buffer.capacity <= 4_096)
            start = 0
            searched = 0
        }
    }

    private static let info = Array("INFO ".utf8)

    /// The operation of a line; nil: a message begins, whose bytes follow.
    private mutating func operation(of line: ArraySlice<UInt8>) throws(Violation) -> ServerOperation? {
        let isBlank: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        let name = line.prefix { !isBlank($0) }
        let rest = line.dropFirst(name.count).drop(while: isBlank)
        switch String(decoding: name.prefix(8), as: UTF8.self) {
        case "MSG", "HMSG":
            // Five arguments at most: the line has a limit, so splitting it does too.
            let arguments = rest.split(maxSplits: 5, omittingEmptySubsequences: true, whereSeparator: isBlank)
            let message = try Self.message(arguments, hasHeaders: name.first == UInt8(ascii: "H"))
            guard message.total <= limits.skipped else { throw Violation(description: "a message is too long") }
            let isKept = message.headers <= limits.headers && message.total - message.headers <= limits.payload
            stage = isKept ? .message(message) : .skipping(message, rest: message.total + 2)
            return nil
        case "PING": return .ping
        case "PONG": return .pong
        case "+OK": return .ok
        case "-ERR": return .error(Self.unquoted(rest))
        case "INFO":
            guard let info = NATSServerInfo(json: Array(rest)) else {
                throw Violation(description: "INFO is not valid JSON")
            }
            return .info(info)
        default:
            throw Violation(description: "unknown operation '\(Text.escaped(name.prefix(16)))'")
        }
    }

    private static func message(
        _ arguments: [ArraySlice<UInt8>], hasHeaders: Bool
    ) throws(Violation) -> MessageLine {
        let sizes = hasHeaders ? 2 : 1
        guard arguments.count == 2 + sizes || arguments.count == 3 + sizes,
            let subscription = number(arguments[1]).flatMap({ UInt64(exactly: $0) }),
            let total = number(arguments[arguments.count - 1]),
            let headers = hasHeaders ? number(arguments[arguments.count - 2]) : 0,
            headers <= total, !hasHeaders || headers > 0
        else { throw Violation(description: "a message has wrong arguments") }
        return MessageLine(
            subject: String(decoding: arguments[0], as: UTF8.self),
            reply: arguments.count == 3 + sizes ? String(decoding: arguments[2], as: UTF8.self) : nil,
            subscription: subscription, headers: headers, total: total)
    }

    /// A number of at most 18 digits, which cannot overflow.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        guard (1...18).contains(digits.count) else { return nil }
        var value = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            value = value * 10 + Int(digit - UInt8(ascii: "0"))
        }
        return value
    }

    /// The text of an error, which the server quotes. It is untrusted, and not longer than a line.
    private static func unquoted(_ text: ArraySlice<UInt8>) -> String {
        let quote = UInt8(ascii: "'")
        let isQuoted = text.count >= 2 && text.first == quote && text.last == quote
        return String(decoding: isQuoted ? text.dropFirst().dropLast() : text, as: UTF8.self)
    }

    // MARK: Messages

    private mutating func takeMessage(_ line: MessageLine) throws(Violation) -> ServerOperation {
        let end = start + line.total
        guard buffer[end] == UInt8(ascii: "\r"), buffer[end + 1] == UInt8(ascii: "\n") else {
            throw Violation(description: "a message does not end with CR LF")
        }
        let body = start + line.headers
        let headers = line.headers > 0 ? NATSHeaders(block: buffer[start..<body]) : NATSHeaders()
        defer {
            take(line.total + 2)
            stage = .line
        }
        guard let headers else { return .unusable(subject: line.subject, subscription: line.subscription) }
        let message = NATSMessage(
            subject: line.subject, reply: line.reply, headers: headers, payload: Array(buffer[body..<end]))
        return .message(message, subscription: line.subscription)
    }
}
