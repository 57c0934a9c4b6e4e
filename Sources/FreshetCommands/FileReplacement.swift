import FreshetEventLoop
import Glibc

/// Replaces a file as a whole: who reads it finds the old text or the new one.
enum FileReplacement {
    /// Writes beside the file, and renames. The new one has these rights, whatever the umask is.
    ///
    /// - Parameter path: a link is followed; what is no file, such as a device, is not replaced.
    static func write(_ text: String, to path: String, mode: mode_t = 0o644) throws(SystemCallError) {
        let path = resolved(path)
        var status = stat()
        if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
            throw SystemCallError("replace", errno: EINVAL, subject: path)
        }
        var template = Array("\(path).XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { throw SystemCallError("open", errno: errno, subject: path) }
        let temporary = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        do throws(SystemCallError) {
            defer { close(descriptor) }
            guard fchmod(descriptor, mode) == 0 else { throw SystemCallError("chmod", errno: errno, subject: path) }
            try write(Array(text.utf8), to: descriptor, path)
        } catch {
            unlink(temporary)
            throw error
        }
        guard rename(temporary, path) == 0 else {
            let reason = errno
            unlink(temporary)
            throw SystemCallError("rename", errno: reason, subject: path)
        }
    }

    private static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32, _ path: String) throws(SystemCallError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                guard errno == EINTR else { throw SystemCallError("write", errno: errno, subject: path) }
            } else {
                rest = rest.dropFirst(count)
            }
        }
    }
}
