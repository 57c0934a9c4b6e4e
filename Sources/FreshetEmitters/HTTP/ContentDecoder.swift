import CZlib

/// Decodes the content coding of a body as it arrives: gzip (RFC 1952) and deflate (RFC 1950, zlib's format).
///
/// libcurl decodes too, but does not report whether the coding ended: a truncated body looks complete. This decoder
/// reports it (``isComplete``). Other codings are not requested.
///
/// Not `Sendable`: it belongs to its ``BodyReceiver``.
final class ContentDecoder {
    /// Why a body cannot be decoded, for messages.
    struct Failure: Error, Hashable {
        var reason: String
    }

    /// `Accept-Encoding` of a request. `br` and `zstd` would save a few percent more, but their ends cannot be
    /// detected.
    static let accepted = "gzip"

    // zlib's state points back at its stream, so the stream must stay at one address.
    private let stream: UnsafeMutablePointer<z_stream>
    /// Whether the input so far ends with the end of a gzip member or of the zlib stream.
    private(set) var isComplete = false

    /// - Parameter coding: the value of `Content-Encoding`, all of its lines with commas between.
    /// - Returns: nil if the body is not coded.
    static func forCoding(_ coding: String?) throws(Failure) -> ContentDecoder? {
        switch coding?.lowercased() {
        case nil, "", "identity": return nil
        case "gzip", "x-gzip", "deflate": return try ContentDecoder()
        default:
            throw Failure(reason: "it has the content coding '\(Text.escaped(coding ?? ""))', which was not requested")
        }
    }

    private init() throws(Failure) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // 15 is the largest window, in bits; adding 32 detects gzip or zlib by the first bytes (zlib.h).
        guard inflateInit2_(stream, 15 + 32, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw Failure(reason: "out of memory")
        }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Decodes some of the input into the output.
    ///
    /// - Returns: the number of input bytes that were consumed and of output bytes that were produced. If the output is
    ///   not full, all input was consumed.
    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(Failure) -> (taken: Int, made: Int) {
        // zlib only reads the input (zlib.h, ZLIB_CONST). Both are far below 4 GiB: libcurl delivers at most 16 KiB.
        stream.pointee.next_in = UnsafeMutablePointer(
            mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(clamping: input.count)
        stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(clamping: output.count)
        while true {
            // Another member may follow (RFC 1952, 2.2).
            if isComplete {
                guard stream.pointee.avail_in > 0 else { break }
                inflateReset(stream)
                isComplete = false
            }
            let result = inflate(stream, Z_NO_FLUSH)
            if result == Z_STREAM_END {
                isComplete = true
                continue
            }
            // Z_BUF_ERROR: no progress was possible, because the input is empty or the output is full. The data is
            // valid.
            guard result == Z_OK || result == Z_BUF_ERROR else {
                throw Failure(reason: stream.pointee.msg.map { String(cString: $0) } ?? "the data is damaged")
            }
            if result == Z_BUF_ERROR || stream.pointee.avail_in == 0 || stream.pointee.avail_out == 0 { break }
        }
        return (input.count - Int(stream.pointee.avail_in), output.count - Int(stream.pointee.avail_out))
    }
}
