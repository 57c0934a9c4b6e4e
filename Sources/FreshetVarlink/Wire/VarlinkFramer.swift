import Glibc

/// Splits a stream of bytes into messages, each of which ends with a NUL byte.
///
/// ```swift
/// framer.append(bytes)
/// while let message = try framer.next() { … }
/// ```
public struct VarlinkFramer: Sendable {
    /// A message is longer than the limit. The rest of the stream cannot be read.
    public struct MessageTooLong: Error, Hashable, Sendable, CustomStringConvertible {
        /// The most bytes that a message may have.
        public var limit: Int
        public var description: String { "a message is longer than \(limit) bytes" }
    }

    /// The most bytes of a message without its NUL.
    public let limit: Int
    private var buffer: [UInt8] = []
    /// The index at which the first message begins that was not taken.
    private var start = 0
    /// The index up to which there is no NUL, so that each byte is searched only once, even if bytes arrive one by one.
    private var searched = 0

    public init(limit: Int) { self.limit = limit }

    /// Whether the buffer has bytes of an incomplete message.
    public var isInMessage: Bool { start < buffer.count }

    /// Adds received bytes.
    public mutating func append(_ bytes: some Collection<UInt8>) {
        if start > 0 {
            buffer.removeFirst(start)
            searched -= start
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// Takes the next complete message, without its NUL; nil: no message is complete.
    public mutating func next() throws(MessageTooLong) -> [UInt8]? {
        guard let end = buffer[searched...].firstIndex(of: 0) else {
            searched = buffer.count
            guard buffer.count - start <= limit else { throw MessageTooLong(limit: limit) }
            return nil
        }
        guard end - start <= limit else { throw MessageTooLong(limit: limit) }
        let message = Array(buffer[start..<end])
        take(until: end)
        return message
    }

    /// Takes the next complete message if it has these bytes; returns whether it was taken.
    ///
    /// - Parameter message: a message that ``next()`` returned earlier.
    mutating func take(_ message: [UInt8]) -> Bool {
        let end = start + message.count
        guard end < buffer.count, buffer[end] == 0 else { return false }
        let isSame = buffer.withUnsafeBytes { buffer in
            message.withUnsafeBytes { message in
                // The pointers are nil only for empty arrays.
                guard let known = message.baseAddress, let begin = buffer.baseAddress?.advanced(by: start) else {
                    return message.isEmpty
                }
                return memcmp(begin, known, message.count) == 0
            }
        }
        if isSame { take(until: end) }
        return isSame
    }

    /// Removes the first message, whose NUL has this index.
    private mutating func take(until end: Int) {
        start = end + 1
        searched = start
        if start == buffer.count {
            buffer.removeAll(keepingCapacity: buffer.capacity <= 4_096)
            start = 0
            searched = 0
        }
    }
}
