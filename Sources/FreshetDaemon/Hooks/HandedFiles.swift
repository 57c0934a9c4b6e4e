import FreshetEventLoop
import FreshetPipelines
import Glibc

/// The files by which programs are handed what may have come from elsewhere, each for the time of a run, in a directory
/// that is the daemon's alone.
struct HandedFiles: Sendable {
    let directory: String
    /// Names begin with it.
    let prefix: String
    let suffix: String

    struct Refusal: Error, CustomStringConvertible {
        var description: String
    }

    /// Files in a directory of their own below `TMPDIR`, which is to be ended by ``removeDirectory()``. Blocks.
    static func temporary(prefix: String) throws(Refusal) -> HandedFiles {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        // The six X are what mkdtemp(3) puts letters of its own for.
        var template = Array("\(parent)/freshet-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Refusal(
                description: "no directory could be made in \(parent): \(String(cString: strerror(errno)))")
        }
        return HandedFiles(
            directory: String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self),
            prefix: prefix,
            suffix: "")
    }

    func removeDirectory() { rmdir(directory) }

    /// Makes the directory, and removes what a daemon that was killed has left in it. Blocks.
    func prepare() throws {
        try Supervisor.makeDirectory(directory, mode: 0o700)
        guard let stream = opendir(directory) else { return }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix(prefix) { names.append(name) }
        }
        for name in names { unlink("\(directory)/\(name)") }
    }

    /// Writes a file that the daemon's user alone may read, and returns its path. Blocks.
    func write(_ content: [UInt8], number: UInt64) throws(Refusal) -> String {
        let path = "\(directory)/\(prefix)\(number)\(suffix)"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw refusal("made", path) }
        defer { close(descriptor) }
        guard StandardStream.write(content[...], to: descriptor) else {
            defer { unlink(path) }
            throw refusal("written", path)
        }
        return path
    }

    /// Writes a file for as long as something runs that is given its path.
    func hand<Result: Sendable>(
        _ content: [UInt8], number: UInt64, on workers: WorkerPool,
        to body: (_ path: String) async throws(FetchError) -> Result
    ) async throws(FetchError) -> Result {
        let path = try await workers.run("program") { () throws(FetchError) in
            do throws(Refusal) {
                return try write(content, number: number)
            } catch {
                throw .failed(RunFailure(.local, error.description))
            }
        }
        let result: Swift.Result<Result, FetchError>
        do throws(FetchError) {
            result = .success(try await body(path))
        } catch {
            result = .failure(error)
        }
        await workers.run("program") { _ = unlink(path) }
        return try result.get()
    }

    private func refusal(_ verb: String, _ path: String) -> Refusal {
        Refusal(description: "\(path) could not be \(verb): \(String(cString: strerror(errno)))")
    }
}
