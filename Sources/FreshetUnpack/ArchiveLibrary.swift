import Glibc

/// libarchive, loaded while a helper runs: the daemon neither links nor loads it, and a machine on which nothing is
/// unpacked does not need it.
///
/// The declarations are those of archive.h and archive_entry.h of version 3. The number 13 is the library's ABI since
/// 2012.
package struct ArchiveLibrary {
    package static let file = "libarchive.so.13"
    /// The remedy if the library is missing.
    package static let remedy = "install libarchive (Debian: apt install libarchive13)"

    // Results of functions (archive.h).
    static let ok: Int32 = 0
    static let end: Int32 = 1
    static let warning: Int32 = -20
    static let fatal: Int32 = -30

    typealias Handle = OpaquePointer
    typealias Call = @convention(c) (Handle) -> Int32
    typealias TextOf = @convention(c) (Handle) -> UnsafePointer<CChar>?
    typealias Read =
        @convention(c) (
            Handle?, UnsafeMutableRawPointer?, UnsafeMutablePointer<UnsafeRawPointer?>?
        ) -> Int
    typealias Seek = @convention(c) (Handle?, UnsafeMutableRawPointer?, Int64, Int32) -> Int64

    let new: @convention(c) () -> Handle?
    let free: Call
    let supportRaw: Call
    let supportEmpty: Call
    let supportTar: Call
    let supportZip: Call
    let appendFilter: @convention(c) (Handle, Int32) -> Int32
    let setRead: @convention(c) (Handle, Read) -> Int32
    let setSeek: @convention(c) (Handle, Seek) -> Int32
    let setData: @convention(c) (Handle, UnsafeMutableRawPointer?) -> Int32
    let open: Call
    let nextHeader: @convention(c) (Handle, UnsafeMutablePointer<Handle?>) -> Int32
    let readBlock:
        @convention(c) (
            Handle, UnsafeMutablePointer<UnsafeRawPointer?>, UnsafeMutablePointer<Int>, UnsafeMutablePointer<Int64>
        ) -> Int32
    let errorNumber: Call
    let errorText: TextOf
    let filterBytes: @convention(c) (Handle, Int32) -> Int64
    let path: TextOf
    let pathUTF8: TextOf
    let hardLink: TextOf
    let fileType: @convention(c) (Handle) -> UInt32
    let isEncrypted: Call
    let hasSize: Call
    let size: @convention(c) (Handle) -> Int64

    /// Loads the library. Call it before the sandbox.
    init() throws(UnpackError) {
        let library: UnsafeMutableRawPointer
        do throws(UnpackError) {
            library = try Self.load(Self.file)
        } catch {
            throw Self.missing(error.message)
        }
        new = try Self.function("archive_read_new", library)
        free = try Self.function("archive_read_free", library)
        supportRaw = try Self.function("archive_read_support_format_raw", library)
        supportEmpty = try Self.function("archive_read_support_format_empty", library)
        supportTar = try Self.function("archive_read_support_format_tar", library)
        supportZip = try Self.function("archive_read_support_format_zip_seekable", library)
        appendFilter = try Self.function("archive_read_append_filter", library)
        setRead = try Self.function("archive_read_set_read_callback", library)
        setSeek = try Self.function("archive_read_set_seek_callback", library)
        setData = try Self.function("archive_read_set_callback_data", library)
        open = try Self.function("archive_read_open1", library)
        nextHeader = try Self.function("archive_read_next_header", library)
        readBlock = try Self.function("archive_read_data_block", library)
        errorNumber = try Self.function("archive_errno", library)
        errorText = try Self.function("archive_error_string", library)
        filterBytes = try Self.function("archive_filter_bytes", library)
        path = try Self.function("archive_entry_pathname", library)
        pathUTF8 = try Self.function("archive_entry_pathname_utf8", library)
        hardLink = try Self.function("archive_entry_hardlink", library)
        fileType = try Self.function("archive_entry_filetype", library)
        isEncrypted = try Self.function("archive_entry_is_encrypted", library)
        hasSize = try Self.function("archive_entry_size_is_set", library)
        size = try Self.function("archive_entry_size", library)
    }

    /// Why the library cannot be loaded by this process; nil: it can. The process has it loaded afterwards.
    package static func loadFailure(_ file: String) -> String? {
        do throws(UnpackError) {
            _ = try load(file)
            return nil
        } catch {
            return error.message
        }
    }

    private static func load(_ file: String) throws(UnpackError) -> UnsafeMutableRawPointer {
        guard let library = dlopen(file, RTLD_NOW | RTLD_LOCAL) else {
            throw UnpackError(dlerror().map { String(cString: $0) } ?? "unknown error", status: .unavailable)
        }
        return library
    }

    private static func function<Function>(
        _ name: String, _ library: UnsafeMutableRawPointer
    ) throws(UnpackError) -> Function {
        guard let symbol = dlsym(library, name) else { throw missing("it has no \(name)") }
        return unsafeBitCast(symbol, to: Function.self)
    }

    static func missing(_ reason: String) -> UnpackError {
        UnpackError(
            "\(file) cannot be loaded; \(remedy): \(reason)",
            status: .unavailable)
    }
}
