import Glibc

/// Gives bytes, in order.
protocol ByteReader: AnyObject {
    /// Reads the next bytes; 0 at the end, which is reported only if nothing is missing.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(UnpackError) -> Int
}

/// The input: a regular file, read from its beginning.
final class InputFile: ByteReader {
    /// The size of a piece, in bytes.
    static let pieceSize = 64 << 10

    private let descriptor: Int32
    /// In bytes.
    let size: UInt64
    /// The first bytes, by which formats are recognized: one block of tar at most.
    let beginning: [UInt8]

    init(_ descriptor: Int32) throws(UnpackError) {
        self.descriptor = descriptor
        let end = lseek(descriptor, 0, SEEK_END)
        guard end >= 0, lseek(descriptor, 0, SEEK_SET) == 0 else { throw Self.unreadable }
        size = UInt64(end)
        var bytes = [UInt8](repeating: 0, count: 512)
        let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        guard count >= 0 else { throw Self.unreadable }
        beginning = Array(bytes[..<count])
    }

    private static var unreadable: UnpackError {
        UnpackError("the helper cannot read its input", status: .unavailable)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(UnpackError) -> Int {
        while true {
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            if count >= 0 { return count }
            guard errno == EINTR else { throw Self.unreadable }
        }
    }

    /// Sets the position, as lseek(2) does. Negative: it failed.
    func seek(_ offset: Int64, _ whence: Int32) -> Int64 { Int64(lseek(descriptor, off_t(offset), whence)) }
}
