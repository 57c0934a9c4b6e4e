import CCrypto
import CExpat
import CZlib
import FreshetHelper

/// Validates contents in formats that jq cannot read. The helper does it, because these contents are untrusted too.
enum ContentProbe {
    /// Why a content is invalid in its format.
    struct ValidationError: Error, Hashable {
        var message: String

        init(_ message: String) { self.message = message }
    }

    static func reply(to request: HelperRequest) -> HelperReply {
        do throws(ValidationError) {
            let count: Int?
            switch request.program {
            case "xml": count = try validateXML(request.input)
            case "pem": count = try countPEM(request.input)
            case "gzip": count = try validateGzip(request.input)
            default: return .message(.invalidProgram, "unknown format")
            }
            return HelperReply(.done, verdict: true, bytes: count.map { Array("\($0)".utf8) } ?? [])
        } catch {
            return .message(.invalidInput, error.message)
        }
    }

    /// The size of the pieces in which input is parsed, in bytes: expat copies each piece.
    private static let pieceSize = 64 << 10

    // MARK: XML

    /// Checks with expat that a document is well-formed. External entities are not read.
    private static func validateXML(_ input: [UInt8]) throws(ValidationError) -> Int? {
        guard let parser = XML_ParserCreate(nil) else { throw ValidationError("out of memory") }
        defer { XML_ParserFree(parser) }
        var rest = input[...]
        repeat {
            let piece = rest.prefix(pieceSize)
            rest = rest.dropFirst(pieceSize)
            let status = piece.withUnsafeBytes { bytes in
                XML_Parse(
                    parser, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count),
                    rest.isEmpty ? 1 : 0)
            }
            guard status == XML_STATUS_OK else {
                let reason = XML_ErrorString(XML_GetErrorCode(parser)).map { String(cString: $0) } ?? "unknown error"
                let (line, column) = (XML_GetCurrentLineNumber(parser), XML_GetCurrentColumnNumber(parser))
                throw ValidationError("line \(line), column \(column + 1): \(reason)")
            }
        } while !rest.isEmpty
        return nil
    }

    // MARK: gzip

    /// Checks all members, with their checksums and lengths, with zlib. The output is discarded piece by piece.
    private static func validateGzip(_ input: [UInt8]) throws(ValidationError) -> Int? {
        // zlib's state points back at its stream, so the stream must stay at one address.
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        defer { stream.deallocate() }
        stream.initialize(to: z_stream())
        // 15 is the largest window, in bits; adding 16 accepts only the gzip format (zlib.h).
        guard inflateInit2_(stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw ValidationError("out of memory")
        }
        defer { inflateEnd(stream) }
        var output = [UInt8](repeating: 0, count: pieceSize)
        let result = input.withUnsafeBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                Result { () throws(ValidationError) in try inflateAll(stream, input, output) }
            }
        }
        try result.get()
        return nil
    }

    private static func inflateAll(
        _ stream: UnsafeMutablePointer<z_stream>, _ input: UnsafeBufferPointer<UInt8>,
        _ output: UnsafeMutableBufferPointer<UInt8>
    ) throws(ValidationError) {
        // zlib only reads the input (zlib.h, ZLIB_CONST), which is shorter than 4 GiB (HelperRequest.maxInput).
        stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
        stream.pointee.avail_in = UInt32(clamping: input.count)
        while true {
            stream.pointee.next_out = output.baseAddress
            stream.pointee.avail_out = UInt32(output.count)
            switch inflate(stream, Z_NO_FLUSH) {
            case Z_OK: break
            case Z_STREAM_END:
                guard stream.pointee.avail_in > 0 else { return }
                inflateReset(stream)
            case Z_BUF_ERROR: throw ValidationError("the data is truncated")
            default: throw ValidationError(stream.pointee.msg.map { String(cString: $0) } ?? "the data is damaged")
            }
        }
    }

    // MARK: PEM

    /// Counts the texts between boundaries, with libcrypto. Text around the boundaries is ignored (RFC 7468, section
    /// 2).
    private static func countPEM(_ input: [UInt8]) throws(ValidationError) -> Int {
        // The memory is only read while the BIO lives.
        let result = input.withUnsafeBytes { bytes in
            Result { () throws(ValidationError) in
                guard let source = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
                    throw ValidationError("out of memory")
                }
                defer { BIO_free(source) }
                var count = 0
                while try validateText(from: source, number: count + 1) { count += 1 }
                guard count > 0 else { throw ValidationError("it contains no '-----BEGIN …-----'") }
                return count
            }
        }
        return try result.get()
    }

    /// Reads and validates the next text. Returns false at the end of the input.
    private static func validateText(from source: OpaquePointer, number: Int) throws(ValidationError) -> Bool {
        var label: UnsafeMutablePointer<CChar>?
        var header: UnsafeMutablePointer<CChar>?
        var data: UnsafeMutablePointer<UInt8>?
        var length = 0
        ERR_clear_error()
        guard PEM_read_bio(source, &label, &header, &data, &length) == 1 else {
            let error = ERR_peek_last_error()
            // ERR_GET_REASON of err.h, a macro: the low 23 bits.
            if error & 0x7F_FFFF == UInt(PEM_R_NO_START_LINE) { return false }
            throw ValidationError("text \(number): \(reason(of: error))")
        }
        defer {
            for memory in [
                UnsafeMutableRawPointer(label), UnsafeMutableRawPointer(header), UnsafeMutableRawPointer(data),
            ] {
                CRYPTO_free(memory, nil, 0)
            }
        }
        let name = label.map { String(cString: $0) } ?? ""
        var next = UnsafePointer(data)
        switch name {
        case "CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE":
            let certificate = d2i_X509(nil, &next, length)
            X509_free(certificate)
            if certificate == nil {
                throw ValidationError("text \(number) is not a certificate: \(reason(of: ERR_peek_last_error()))")
            }
        case "X509 CRL":
            let list = d2i_X509_CRL(nil, &next, length)
            X509_CRL_free(list)
            if list == nil {
                throw ValidationError("text \(number) is not a revocation list: \(reason(of: ERR_peek_last_error()))")
            }
        default: break
        }
        return true
    }

    private static func reason(of error: UInt) -> String {
        ERR_reason_error_string(error).map { String(cString: $0) } ?? "the data is damaged"
    }
}
