import Glibc

/// Reads the members of an archive with libarchive.
final class ArchiveReader: ByteReader {
    enum Kind: String {
        case tar, zip
    }

    private let handle: ArchiveHandle
    private let kind: Kind

    /// - Parameters:
    ///   - reader: gives the bytes of the archive: for a zip file the input itself, which is read at several places.
    ///   - input: for messages.
    init(
        _ library: ArchiveLibrary, _ reader: any ByteReader, _ kind: Kind, _ input: InputFile
    ) throws(UnpackError) {
        self.kind = kind
        handle = try ArchiveHandle(library, reader, seeking: kind == .zip ? input : nil)
        handle.call(kind == .tar ? library.supportTar : library.supportZip)
        guard handle.open() else {
            if let failure = handle.failure { throw failure }
            if kind == .zip {
                // Only the end of a directory: libarchive does not take it for zip.
                if input.beginning.starts(with: [0x50, 0x4B, 0x05, 0x06]) {
                    throw UnpackError("the archive has no members")
                }
                throw UnpackError("the zip data is damaged or truncated: it has no directory of its members")
            }
            throw reader === input
                ? Signature.mismatch(.tar, input.beginning) : UnpackError("the decompressed answer is not tar")
        }
    }

    /// The next member; nil at the end.
    func nextMember() throws(UnpackError) -> ArchiveMember? {
        guard let entry = try handle.nextEntry(of: kind.rawValue) else { return nil }
        let library = handle.library
        guard let path = library.pathUTF8(entry) ?? library.path(entry) else {
            throw UnpackError("the archive has a member without a name")
        }
        let length = strnlen(path, ContentUnpacker.maxName + 1)
        guard length <= ContentUnpacker.maxName else {
            throw UnpackError("the archive has a member whose name is longer than \(ContentUnpacker.maxName) bytes")
        }
        let bytes = UnsafeRawBufferPointer(start: path, count: length)
        return ArchiveMember(path: Array(bytes), kind: memberKind(entry), isEncrypted: library.isEncrypted(entry) != 0)
    }

    private func memberKind(_ entry: ArchiveLibrary.Handle) -> ArchiveMember.Kind {
        if handle.library.hardLink(entry) != nil { return .other("a link") }
        return switch mode_t(handle.library.fileType(entry)) {
        case S_IFREG: .file
        case S_IFDIR: .other("a directory")
        case S_IFLNK: .other("a symbolic link")
        case S_IFCHR, S_IFBLK: .other("a device")
        case S_IFIFO: .other("a FIFO")
        default: .other("neither a file nor a directory")
        }
    }

    /// Reads the content of the last member.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(UnpackError) -> Int {
        try handle.read(into: buffer, of: kind.rawValue)
    }
}

/// Decompresses zstd, xz or bzip2 with libarchive: one stream or several.
///
/// Bytes after the last stream are an error, except zero bytes as far as the formats allow them: after bzip2, and a
/// multiple of four after xz.
final class CompressedReader: ByteReader {
    /// The compressions, with libarchive's numbers (ARCHIVE_FILTER_… of archive.h).
    enum Compression: Int32 {
        case bzip2 = 2
        case xz = 6
        case zstd = 14
    }

    private let handle: ArchiveHandle
    private let input: InputFile
    private let name: String
    private var hasBegun = false
    private var hasEnded = false

    init(_ library: ArchiveLibrary, _ input: InputFile, _ compression: Compression) throws(UnpackError) {
        self.input = input
        name = "\(compression)"
        handle = try ArchiveHandle(library, input, seeking: nil)
        // Exactly one filter: with libarchive's own detection, a compressed file in a compressed file would be
        // decompressed twice.
        guard library.appendFilter(handle.archive, compression.rawValue) == ArchiveLibrary.ok else {
            throw UnpackError("libarchive does not support \(compression): \(handle.errorText)", status: .unavailable)
        }
        // Both, because the raw format needs a byte.
        handle.call(library.supportRaw)
        handle.call(library.supportEmpty)
        // The format of an empty file also accepts an input that cannot be decompressed.
        guard handle.open(), library.errorNumber(handle.archive) == 0 else { throw handle.damage(of: name) }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(UnpackError) -> Int {
        if !hasBegun {
            hasBegun = true
            hasEnded = try handle.nextEntry(of: name) == nil
            if hasEnded { try checkRest() }
        }
        if !hasEnded {
            let count = try handle.read(into: buffer, of: name)
            if count > 0 { return count }
            hasEnded = try handle.nextEntry(of: name) == nil
            guard hasEnded else { throw handle.damage(of: name) }
            try checkRest()
        }
        return 0
    }

    /// libarchive ignores what is not a bzip2 stream, also the beginning of one.
    private func checkRest() throws(UnpackError) {
        guard handle.usedBytes < input.size else { return }
        _ = input.seek(Int64(handle.usedBytes), SEEK_SET)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: InputFile.pieceSize, alignment: 16)
        defer { buffer.deallocate() }
        while case let count = try input.read(into: buffer), count > 0 {
            guard buffer[..<count].allSatisfy({ $0 == 0 }) else {
                throw UnpackError("other data follows the end of the \(name) data; the answer may be damaged")
            }
        }
    }
}

/// Owns one `struct archive` of libarchive.
private final class ArchiveHandle {
    let library: ArchiveLibrary
    let archive: ArchiveLibrary.Handle
    private let source: ArchiveSource
    /// The size of the last entry, if its header states it.
    private var size: Int64?
    /// The number of bytes of the last entry up to the end of the block.
    private var position: Int64 = 0
    /// The zero bytes before the rest of the block.
    private var zeros: Int64 = 0
    /// The rest of the last block, in libarchive's memory until the next block is read.
    private var block = UnsafeRawBufferPointer(start: nil, count: 0)

    /// - Parameter seeking: the file in which the position may be set; nil: the bytes are only read in order.
    init(_ library: ArchiveLibrary, _ reader: any ByteReader, seeking: InputFile?) throws(UnpackError) {
        guard let archive = library.new() else { throw UnpackError("out of memory", status: .unavailable) }
        self.library = library
        self.archive = archive
        source = ArchiveSource(reader, seeking: seeking)
        // The handle keeps the source alive as long as the archive exists.
        _ = library.setData(archive, Unmanaged.passUnretained(source).toOpaque())
        _ = library.setRead(archive) { _, data, piece in
            guard let data, let piece else { return Int(ArchiveLibrary.fatal) }
            return Unmanaged<ArchiveSource>.fromOpaque(data).takeUnretainedValue().next(&piece.pointee)
        }
        guard seeking != nil else { return }
        _ = library.setSeek(archive) { _, data, offset, whence in
            guard let data else { return Int64(ArchiveLibrary.fatal) }
            let position = Unmanaged<ArchiveSource>.fromOpaque(data).takeUnretainedValue().seek(offset, whence)
            return position < 0 ? Int64(ArchiveLibrary.fatal) : position
        }
    }

    deinit { _ = library.free(archive) }

    func call(_ function: ArchiveLibrary.Call) { _ = function(archive) }

    /// Begins to read. Returns false if the input is of another format, or could not be read.
    func open() -> Bool { library.open(archive) == ArchiveLibrary.ok }

    /// Why the input could not be read.
    var failure: UnpackError? { source.failure }

    var errorText: String { library.errorText(archive).map { String(cString: $0) } ?? "unknown error" }

    func damage(of name: String) -> UnpackError {
        failure ?? UnpackError("the \(name) data is damaged or truncated: \(errorText)")
    }

    /// The next entry; nil at the end.
    func nextEntry(of name: String) throws(UnpackError) -> ArchiveLibrary.Handle? {
        var entry: ArchiveLibrary.Handle?
        let result = library.nextHeader(archive, &entry)
        if result == ArchiveLibrary.end {
            guard failure == nil, library.errorNumber(archive) == 0 else { throw damage(of: name) }
            return nil
        }
        // A warning is about an attribute that is not used here, such as a time or an owner.
        guard result == ArchiveLibrary.ok || result == ArchiveLibrary.warning, let entry else {
            throw damage(of: name)
        }
        (position, zeros, block) = (0, 0, UnsafeRawBufferPointer(start: nil, count: 0))
        size = library.hasSize(entry) != 0 ? library.size(entry) : nil
        return entry
    }

    /// Reads the next bytes of the last entry; 0 at its end. A hole of a sparse file is zero bytes.
    ///
    /// It does not use `archive_read_data`, which returns 0 before the end of some sparse files.
    func read(into buffer: UnsafeMutableRawBufferPointer, of name: String) throws(UnpackError) -> Int {
        while zeros == 0, block.isEmpty {
            guard try readBlock(of: name) else { return 0 }
        }
        guard zeros == 0 else {
            let count = Int(min(zeros, Int64(buffer.count)))
            UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]).initializeMemory(as: UInt8.self, repeating: 0)
            zeros -= Int64(count)
            return count
        }
        let count = min(block.count, buffer.count)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: block[..<count]))
        block = UnsafeRawBufferPointer(rebasing: block[count...])
        return count
    }

    /// Reads the next block. Returns false at the end of the entry.
    private func readBlock(of name: String) throws(UnpackError) -> Bool {
        var (bytes, count, offset): (UnsafeRawPointer?, Int, Int64) = (nil, 0, 0)
        let result = library.readBlock(archive, &bytes, &count, &offset)
        if result == ArchiveLibrary.end {
            guard let size, size != position else { return false }
            // The last hole of a sparse file: libarchive has no block for it, only the offset of the end.
            guard offset == size, size > position else {
                throw UnpackError("the \(name) data is damaged or truncated: a member is shorter than its header says")
            }
            (zeros, position) = (size - position, size)
            return true
        }
        // Here a warning is about a wrong checksum or length.
        guard result == ArchiveLibrary.ok, offset >= position else { throw damage(of: name) }
        zeros = offset - position
        block = UnsafeRawBufferPointer(start: bytes, count: count)
        position = offset + Int64(count)
        return true
    }

    /// The number of bytes of the input that were used.
    var usedBytes: UInt64 { UInt64(clamping: library.filterBytes(archive, -1)) }
}

/// Gives libarchive the bytes of an input.
private final class ArchiveSource {
    private let reader: any ByteReader
    private let file: InputFile?
    private let piece: UnsafeMutableRawBufferPointer
    /// Why the input could not be read.
    private(set) var failure: UnpackError?

    init(_ reader: any ByteReader, seeking: InputFile?) {
        self.reader = reader
        file = seeking
        piece = .allocate(byteCount: InputFile.pieceSize, alignment: 16)
    }

    deinit { piece.deallocate() }

    /// Reads the next piece; returns its length, 0 at the end.
    func next(_ bytes: inout UnsafeRawPointer?) -> Int {
        do throws(UnpackError) {
            let count = try reader.read(into: piece)
            bytes = UnsafeRawPointer(piece.baseAddress)
            return count
        } catch {
            failure = error
            return Int(ArchiveLibrary.fatal)
        }
    }

    func seek(_ offset: Int64, _ whence: Int32) -> Int64 { file?.seek(offset, whence) ?? -1 }
}
