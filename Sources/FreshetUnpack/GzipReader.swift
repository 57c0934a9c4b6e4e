import CZlib

/// Decompresses gzip (RFC 1952): one member or several. Each member must have the right checksum and length, which
/// libarchive does not check.
///
/// Bytes after the last member are an error, except zero bytes, by which some programs fill the last block.
final class GzipReader: ByteReader {
    private let input: InputFile
    // zlib's state points back at its stream, so the stream must stay at one address.
    private let stream: UnsafeMutablePointer<z_stream>
    private let piece: UnsafeMutableRawBufferPointer
    private var isInMember = true
    private var isPadding = false

    init(_ input: InputFile) throws(UnpackError) {
        self.input = input
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        piece = .allocate(byteCount: InputFile.pieceSize, alignment: 16)
        // 15 is the largest window, in bits; adding 16 accepts only the gzip format (zlib.h).
        guard inflateInit2_(stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw UnpackError("out of memory", status: .unavailable)
        }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
        piece.deallocate()
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(UnpackError) -> Int {
        stream.pointee.next_out = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(clamping: buffer.count)
        while stream.pointee.avail_out > 0 {
            if stream.pointee.avail_in == 0 {
                let count = try input.read(into: piece)
                if count == 0 {
                    guard !isInMember else { throw UnpackError("the gzip data is truncated: it has no end") }
                    break
                }
                stream.pointee.next_in = piece.baseAddress?.assumingMemoryBound(to: UInt8.self)
                stream.pointee.avail_in = UInt32(count)
            }
            if !isInMember {
                try skipPadding()
                guard stream.pointee.avail_in > 0 else { continue }
                inflateReset(stream)
                isInMember = true
            }
            switch inflate(stream, Z_NO_FLUSH) {
            case Z_OK, Z_BUF_ERROR: break
            case Z_STREAM_END: isInMember = false
            default:
                let reason = stream.pointee.msg.map { String(cString: $0) } ?? "unknown error"
                throw UnpackError("the gzip data is damaged: \(reason)")
            }
        }
        return buffer.count - Int(stream.pointee.avail_out)
    }

    /// Skips zero bytes between and after members. Only another member may follow, and nothing but zero bytes after
    /// padding.
    private func skipPadding() throws(UnpackError) {
        while stream.pointee.avail_in > 0, let next = stream.pointee.next_in, next.pointee == 0 {
            isPadding = true
            stream.pointee.next_in = next + 1
            stream.pointee.avail_in -= 1
        }
        guard stream.pointee.avail_in > 0, let next = stream.pointee.next_in else { return }
        guard !isPadding, next.pointee == 0x1F else {
            throw UnpackError("other data follows the end of the gzip data; the answer may be damaged")
        }
    }
}
