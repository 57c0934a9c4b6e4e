import CZlib

/// Takes the content coding off a body as it comes: gzip (RFC 1952) and deflate (RFC 1950, zlib's format).
///
/// libcurl decodes too, and does not say whether the end of the coding came: a body that was cut looks whole. This says it
/// (``isComplete``). Other codings are not asked for.
///
/// Not `Sendable`: it belongs to its ``HTTPExchange``.
final class ContentDecoder {
    /// Why a body cannot be decoded, for people.
    struct Failure: Error, Hashable {
        var reason: String
    }

    /// `Accept-Encoding` of a request. `br` and `zstd` would save a few percent more, and their ends are not known.
    static let accepted = "gzip"

    // zlib's state points back at its stream, which therefore stays where it is.
    private let stream: UnsafeMutablePointer<z_stream>
    /// The end of a gzip member, or of the zlib stream, was the last that came.
    private(set) var isComplete = false

    /// - Parameter coding: the value of `Content-Encoding`, all of its lines with commas between.
    /// - Returns: nil if the body is not coded.
    static func forCoding(_ coding: String?) throws(Failure) -> ContentDecoder? {
        switch coding?.lowercased() {
        case nil, "", "identity": return nil
        case "gzip", "x-gzip", "deflate": return try ContentDecoder()
        default:
            throw Failure(reason: "it is coded as '\(Text.escaped(coding ?? ""))', which nobody asked for")
        }
    }

    private init() throws(Failure) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // 15 bits of window, the most there are; 32 more: gzip or zlib, by the first bytes (zlib.h).
        guard inflateInit2_(stream, 15 + 32, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw Failure(reason: "memory has run out")
        }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Decodes some of the input into the output.
    ///
    /// - Returns: how many bytes of input were taken and of output made. If the output is not full, all input was taken.
    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
    ) throws(Failure) -> (taken: Int, made: Int) {
        // zlib only reads the input (zlib.h, ZLIB_CONST). Both are far below 4 GiB: libcurl hands on 16 KiB at once.
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
            // Z_BUF_ERROR: nothing could be done, for want of input or of room for output. That is no error of the data.
            guard result == Z_OK || result == Z_BUF_ERROR else {
                throw Failure(reason: stream.pointee.msg.map { String(cString: $0) } ?? "the data is damaged")
            }
            if result == Z_BUF_ERROR || stream.pointee.avail_in == 0 || stream.pointee.avail_out == 0 { break }
        }
        return (input.count - Int(stream.pointee.avail_in), output.count - Int(stream.pointee.avail_out))
    }
}
