/// Unpacks one input, within the limits that hold for all inputs.
struct ContentUnpacker {
    /// A content may be this many times as long as its input, and ``slack`` longer. The most that gzip can do is 1,032.
    static let ratio: UInt64 = 1_000
    static let slack: UInt64 = 1 << 20
    /// The most members of an archive.
    static let maxMembers = 100_000
    /// The longest name of a member, in bytes: the longest path of Linux.
    static let maxName = 4_096

    typealias Write = (UnsafeRawBufferPointer) throws(UnpackError) -> Void

    private let request: UnpackRequest
    /// Nil: only gzip can be unpacked.
    private let library: ArchiveLibrary?

    init(_ request: UnpackRequest, _ library: ArchiveLibrary?) {
        self.request = request
        self.library = library
    }

    /// - Parameter write: gets the content in pieces. The pieces count only if this function returns.
    func unpack(_ input: InputFile, _ write: Write) throws(UnpackError) {
        guard input.size > 0 else { throw UnpackError("the answer is empty") }
        let format = Signature.format(of: input.beginning)
        switch request.format {
        case .gzip, .zstd, .xz, .bzip2:
            guard format == request.format, let reader = try decompressor(format, input) else {
                throw Signature.mismatch(request.format, input.beginning)
            }
            let meter = OutputMeter(of: input, maxOutput: request.maxOutput)
            try copy(write) { (buffer) throws(UnpackError) in
                let count = try reader.read(into: buffer)
                try meter.add(count)
                return count
            }
        case .tar:
            let reader = try decompressor(format, input)
            // A zip file is not a compressed tar archive.
            guard reader != nil || format == .tar || format == nil else {
                throw Signature.mismatch(.tar, input.beginning)
            }
            try unpackMember(of: input, reader.map { MeteredReader($0, of: input) } ?? input, .tar, write)
        case .zip:
            guard format == .zip else { throw Signature.mismatch(.zip, input.beginning) }
            try unpackMember(of: input, input, .zip, write)
        }
    }

    /// The decompressor of a format; nil: the format is not a compression.
    private func decompressor(
        _ format: UnpackRequest.Format?, _ input: InputFile
    ) throws(UnpackError) -> (any ByteReader)? {
        switch format {
        case .gzip: try GzipReader(input)
        case .zstd: try CompressedReader(loaded, input, .zstd)
        case .xz: try CompressedReader(loaded, input, .xz)
        case .bzip2: try CompressedReader(loaded, input, .bzip2)
        case .tar, .zip, nil: nil
        }
    }

    private var loaded: ArchiveLibrary {
        get throws(UnpackError) {
            guard let library else { throw ArchiveLibrary.missing("it was not loaded") }
            return library
        }
    }

    private func unpackMember(
        of input: InputFile, _ reader: any ByteReader, _ kind: ArchiveReader.Kind, _ write: Write
    ) throws(UnpackError) {
        let meter = OutputMeter(of: input, maxOutput: request.maxOutput)
        let archive = try ArchiveReader(try loaded, reader, kind, input)
        var search = MemberSearch(request.member)
        // An archive is read to its end, so that a damaged or truncated one is noticed, and a second member, too.
        while let member = try archive.nextMember() {
            guard try search.finds(member) else { continue }
            try copy(write) { (buffer) throws(UnpackError) in
                let count = try archive.read(into: buffer)
                try meter.add(count)
                return count
            }
        }
        // Whatever follows the end of a tar archive is not a member. To decompress it verifies its checksum.
        if kind == .tar {
            try copy({ _ throws(UnpackError) in }) { (buffer) throws(UnpackError) in try reader.read(into: buffer) }
        }
        try search.end()
    }

    /// Passes pieces on until there are no more.
    private func copy(
        _ write: Write, from read: (UnsafeMutableRawBufferPointer) throws(UnpackError) -> Int
    ) throws(UnpackError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: InputFile.pieceSize, alignment: 16)
        defer { buffer.deallocate() }
        while case let count = try read(buffer), count > 0 {
            try write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }
}

/// Counts unpacked bytes, against the limits.
struct OutputLimit {
    private let most: UInt64
    private(set) var count: UInt64 = 0

    /// - Parameter size: the size of the input in bytes.
    init(of size: UInt64) {
        let (product, overflows) = size.multipliedReportingOverflow(by: ContentUnpacker.ratio)
        most = overflows ? .max : product.addingReportingOverflow(ContentUnpacker.slack).partialValue
    }

    mutating func add(_ bytes: Int) throws(UnpackError) {
        count += UInt64(bytes)
        guard count <= most else {
            throw UnpackError(
                "the answer unpacks to more than \(ContentUnpacker.ratio) times its size, as a decompression bomb "
                    + "does; if the content is right, have it published less compressed")
        }
    }
}

/// Counts the bytes of the content.
final class OutputMeter {
    private let maxOutput: UInt64
    private var limit: OutputLimit

    init(of input: InputFile, maxOutput: UInt64) {
        self.maxOutput = maxOutput
        limit = OutputLimit(of: input.size)
    }

    func add(_ count: Int) throws(UnpackError) {
        // First, because to raise check.max-bytes would not help.
        try limit.add(count)
        guard limit.count <= maxOutput else {
            throw UnpackError(
                "the unpacked content has more than \(maxOutput) bytes; raise check.max-bytes if that is right")
        }
    }
}

/// Counts the bytes of a decompressed archive: most of them belong to no content.
final class MeteredReader: ByteReader {
    private let reader: any ByteReader
    private var limit: OutputLimit

    init(_ reader: any ByteReader, of input: InputFile) {
        self.reader = reader
        limit = OutputLimit(of: input.size)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(UnpackError) -> Int {
        let count = try reader.read(into: buffer)
        try limit.add(count)
        return count
    }
}
