import CZlib

/// Bodies for tests.
enum Gzip {
    struct Failed: Error {}

    /// The gzip form of bytes (RFC 1952), as small as zlib makes it.
    static func compress(_ bytes: [UInt8]) throws -> [UInt8] {
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        defer { stream.deallocate() }
        stream.initialize(to: z_stream())
        let size = Int32(MemoryLayout<z_stream>.size)
        // 16 more bits of window: the gzip format (zlib.h).
        guard
            deflateInit2_(stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, size)
                == Z_OK
        else { throw Failed() }
        defer { deflateEnd(stream) }
        var output = [UInt8](repeating: 0, count: Int(deflateBound(stream, UInt(bytes.count))))
        let isWhole = bytes.withUnsafeBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
                stream.pointee.avail_in = UInt32(input.count)
                stream.pointee.next_out = output.baseAddress
                stream.pointee.avail_out = UInt32(output.count)
                return deflate(stream, Z_FINISH) == Z_STREAM_END
            }
        }
        guard isWhole else { throw Failed() }
        return Array(output.prefix(output.count - Int(stream.pointee.avail_out)))
    }
}
