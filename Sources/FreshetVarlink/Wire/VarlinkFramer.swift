/// Cuts a stream of bytes into messages, each of which ends with a NUL byte.
///
/// ```swift
/// framer.append(bytes)
/// while let message = try framer.next() { … }
/// ```
public struct VarlinkFramer: Sendable {
    /// A message is longer than the limit; nothing more can be read from this stream.
    public struct MessageTooLong: Error, Hashable, Sendable, CustomStringConvertible {
        /// The most bytes that a message may have.
        public var limit: Int
        public var description: String { "a message is longer than \(limit) bytes" }
    }

    /// The most bytes of a message, its NUL not counted.
    public let limit: Int
    private var buffer: [UInt8] = []
    /// Where the first message that was not taken begins.
    private var start = 0
    /// Up to where there is no NUL: a message that comes byte by byte is searched once, not once for each byte.
    private var searched = 0

    public init(limit: Int) { self.limit = limit }

    /// Whether there are bytes of a message that is not complete.
    public var isInMessage: Bool { start < buffer.count }

    /// Adds what was read.
    public mutating func append(_ bytes: some Collection<UInt8>) {
        if start > 0 {
            buffer.removeFirst(start)
            searched -= start
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// Takes the next complete message, without its NUL; nil: more has to be read.
    public mutating func next() throws(MessageTooLong) -> [UInt8]? {
        guard let end = buffer[searched...].firstIndex(of: 0) else {
            searched = buffer.count
            guard buffer.count - start <= limit else { throw MessageTooLong(limit: limit) }
            return nil
        }
        guard end - start <= limit else { throw MessageTooLong(limit: limit) }
        let message = Array(buffer[start..<end])
        start = end + 1
        searched = start
        if start == buffer.count {
            buffer.removeAll(keepingCapacity: buffer.capacity <= 4_096)
            start = 0
            searched = 0
        }
        return message
    }
}
