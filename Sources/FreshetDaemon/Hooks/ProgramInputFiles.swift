import FreshetEventLoop
import FreshetPipelines
import FreshetSystemd
import Glibc

/// Files that pass untrusted content to programs. Each file exists for one run of a program, in a directory that only
/// the daemon's user can read.
struct ProgramInputFiles: Sendable {
    let directory: String
    /// The prefix of all file names.
    let prefix: String
    let suffix: String

    struct Refusal: Error, CustomStringConvertible {
        var description: String
    }

    /// Creates a directory below `TMPDIR`. Remove it with ``removeDirectory()``. Blocks.
    static func temporary(prefix: String) throws(Refusal) -> ProgramInputFiles {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        // mkdtemp(3) replaces the six X.
        var template = Array("\(parent)/freshet-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Refusal(
                description: "cannot create a directory in \(parent): \(String(cString: strerror(errno)))")
        }
        return ProgramInputFiles(
            directory: String(decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self),
            prefix: prefix,
            suffix: "")
    }

    func removeDirectory() { rmdir(directory) }

    private static let hookDirectory = "hooks"
    private static let checkDirectory = "checks"

    /// The files for hooks.
    static func hooks(_ directories: ServiceDirectories) -> ProgramInputFiles {
        ProgramInputFiles(directory: "\(directories.state)/\(hookDirectory)", prefix: "change-", suffix: ".json")
    }

    /// The files for programs that check candidates.
    static func checks(_ directories: ServiceDirectories) -> ProgramInputFiles {
        ProgramInputFiles(directory: "\(directories.state)/\(checkDirectory)", prefix: "candidate-", suffix: "")
    }

    /// The names of the directories in the state directory, including renamed ones.
    static var directoryNames: [String] { [hookDirectory, checkDirectory].flatMap { [$0, $0 + formerSuffix] } }

    /// The maximum number of leftover files that ``prepare()`` removes. It renames a directory with more.
    static let leftoversAtStart = 64

    /// The suffix of a renamed directory.
    static let formerSuffix = ".old"

    private var former: String { directory + Self.formerSuffix }

    /// Prepares the directories for checks and hooks. Call it once, when no other daemon uses them. Blocks only for a
    /// short time.
    static func prepareAll(in directories: ServiceDirectories) throws {
        try checks(directories).prepare()
        try hooks(directories).prepare()
    }

    /// Creates the directory, and removes files that a killed daemon left there. Blocks only for a short time: if there
    /// are many files, ``removeLeftovers(atMost:)`` removes them later.
    func prepare() throws {
        try DaemonDirectories.make(directory, mode: 0o700)
        if leftovers(in: directory, atMost: Self.leftoversAtStart + 1).count > Self.leftoversAtStart,
            rename(directory, former) == 0
        {
            return try DaemonDirectories.make(directory, mode: 0o700)
        }
        for name in leftovers(in: directory, atMost: .max) { unlink("\(directory)/\(name)") }
    }

    /// Removes some files of the renamed directory. Blocks.
    ///
    /// - Returns: whether there may be more files.
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

    /// Writes a file that only the daemon's user may read, and returns its path. Blocks.
    func write(_ content: [UInt8], number: UInt64) throws(Refusal) -> String {
        let path = "\(directory)/\(prefix)\(number)\(suffix)"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("create", path) }
        defer { close(descriptor) }
        guard StandardStream.write(content[...], to: descriptor) else {
            defer { unlink(path) }
            throw failure("write", path)
        }
        return path
    }

    /// Writes a file, calls `body` with its path, and then removes the file.
    func withFile<Result: Sendable>(
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

    private func failure(_ verb: String, _ path: String) -> Refusal {
        Refusal(description: "cannot \(verb) \(path): \(String(cString: strerror(errno)))")
    }
}
