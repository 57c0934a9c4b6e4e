import FreshetEventLoop
package import FreshetPipelines
import Glibc

/// Reads small files that contain a secret, on the threads of a ``PathPool``, because a file system may hang.
package struct SecretFileReader: Sendable {
    /// The most bytes that are read: the longest secret, a line break of two bytes, and one byte that shows that the
    /// file is longer.
    package static let sizeLimit = 8_192 + 3

    private let paths: PathPool

    package init(paths: PathPool) { self.paths = paths }

    /// Reads a regular file, of a longer one the first ``sizeLimit`` bytes.
    ///
    /// - Parameter isGuarded: whether other users may have no access, and only the owner may write, and whether links
    ///   on the way are checked as for sources (``FileWalk``). False for files that the service manager has made.
    package func content(of path: String, isGuarded: Bool) async throws(FetchError) -> [UInt8] {
        try await paths.run(path) { () throws(FetchError) in
            do throws(RunFailure) {
                return try Self.read(path, isGuarded: isGuarded)
            } catch {
                throw .failed(error)
            }
        }
    }

    /// When a file was last written: wall-clock microseconds since 1970; nil: it cannot be found.
    package func modificationTime(of path: String) async -> Int64? {
        let time: Int64?? = try? await paths.run(path) { () throws(FetchError) in
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            return Int64(status.st_mtim.tv_sec) * 1_000_000 + Int64(status.st_mtim.tv_nsec) / 1_000
        }
        return time ?? nil
    }

    /// The same as ``content(of:isGuarded:)`` on the calling thread, which it blocks.
    package static func read(_ path: String, isGuarded: Bool) throws(RunFailure) -> [UInt8] {
        let result: Result<[UInt8], RunFailure>
        do throws(SystemCallError) {
            let file = try OwnedDescriptor(
                open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), of: "open", subject: path)
            let status = try FileWalk.status(of: file)
            if let obstacle = try obstacle(status, path, isGuarded: isGuarded) {
                result = .failure(RunFailure(.local, "the credential file \(path) \(obstacle)"))
            } else {
                result = .success(try content(of: file))
            }
        } catch {
            result = .failure(RunFailure(.local, "the credential file \(path) cannot be read: \(error.reason)"))
        }
        return try result.get()
    }

    /// Why an opened file is not read, with the remedy; nil: it is.
    private static func obstacle(
        _ status: stat, _ path: String, isGuarded: Bool
    ) throws(SystemCallError) -> String? {
        guard status.st_mode & S_IFMT == S_IFREG else {
            return "is not a regular file; write the secret into a file"
        }
        guard isGuarded else { return nil }
        guard status.st_mode & 0o007 == 0 else {
            return "is accessible to all users; run 'chmod o= \(path)', and let the service's group read it"
        }
        guard status.st_mode & 0o020 == 0 else { return "may be written by its group; run 'chmod g-w \(path)'" }
        let walk = try FileWalk(path)
        guard FileWalk.isSame(walk.status, status) else { return "was replaced while it was read" }
        return walk.forbiddenLink.map { link in
            "is behind the link \(link.path), which belongs to another user (\(link.owner)); "
                + "give the link to root or to the owner of the file"
        }
    }

    private static func content(of file: OwnedDescriptor) throws(SystemCallError) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: sizeLimit)
        var size = 0
        while size < buffer.count {
            let count = buffer.withUnsafeMutableBytes {
                Glibc.read(file.rawValue, $0.baseAddress?.advanced(by: size), $0.count - size)
            }
            if count == 0 { break }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw SystemCallError("read", errno: errno) }
            size += count
        }
        return Array(buffer[..<size])
    }
}
