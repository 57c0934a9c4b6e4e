import FreshetEventLoop
import FreshetPipelines
import Glibc

/// The files by which programs are handed what may have come from elsewhere, each for the time of a run, in a directory
/// that is the daemon's alone.
struct ProgramInputFiles: Sendable {
    let directory: String
    /// Names begin with it.
    let prefix: String
    let suffix: String

    struct Refusal: Error, CustomStringConvertible {
        var description: String
    }

    /// Files in a directory of their own below `TMPDIR`, which is to be ended by ``removeDirectory()``. Blocks.
    static func temporary(prefix: String) throws(Refusal) -> ProgramInputFiles {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        // The six X are what mkdtemp(3) puts letters of its own for.
        var template = Array("\(parent)/freshet-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Refusal(
                description: "no directory could be made in \(parent): \(String(cString: strerror(errno)))")
        }
        return ProgramInputFiles(
            directory: String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self),
            prefix: prefix,
            suffix: "")
    }

    func removeDirectory() { rmdir(directory) }

    /// So many leftovers are removed by ``prepare()``; a directory with more is moved aside as it is.
    static let leftoversAtStart = 64

    private var former: String { directory + ".old" }

    /// Makes the directory, without what a daemon that was killed has left in it. Blocks, but not for long: many leftovers
    /// wait for ``removeLeftovers(atMost:)``.
    func prepare() throws {
        try Supervisor.makeDirectory(directory, mode: 0o700)
        if leftovers(in: directory, atMost: Self.leftoversAtStart + 1).count > Self.leftoversAtStart,
            rename(directory, former) == 0
        {
            return try Supervisor.makeDirectory(directory, mode: 0o700)
        }
        for name in leftovers(in: directory, atMost: .max) { unlink("\(directory)/\(name)") }
    }

    /// Removes some of what was moved aside. Blocks.
    ///
    /// - Returns: whether there may be more.
    func removeLeftovers(atMost count: Int = 256) -> Bool {
        let names = leftovers(in: former, atMost: count)
        let isRemoved = names.map { unlink("\(former)/\($0)") == 0 }.contains(true)
        if names.isEmpty { rmdir(former) }
        return isRemoved
    }

    private func leftovers(in directory: String, atMost count: Int) -> [String] {
        guard let stream = opendir(directory) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while names.count < count, let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix(prefix) { names.append(name) }
        }
        return names
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
