import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetCache

/// A copy of both directories, as a crash at this point of an operation would leave them.
struct CrashPoint: Sendable {
    var directory: TemporaryDirectory
    var number: Int
    var situation: Comment { "point \(number)" }

    /// The points before and after each system call of an operation that changed a file, and after its last
    /// transaction.
    static func all(
        of deed: (CacheFixture) throws -> Void, on make: (FailingFileSystem) throws -> CacheFixture
    ) throws -> [CrashPoint] {
        let files = FailingFileSystem()
        let fixture = try make(files)
        let taken = Mutex<(points: [Result<CrashPoint, any Error>], state: [String])>(([], []))
        let source = fixture.directory
        let take: @Sendable () -> Void = {
            taken.withLock { taken in
                // Many calls only read, and the point after one call is the point before the next.
                let state = Self.state(of: source.path)
                if state == taken.state { return }
                taken.state = state
                let number = taken.points.count
                taken.points.append(Result { CrashPoint(directory: try source.copied(), number: number) })
            }
        }
        files.arm(.nothing, observer: take)
        try deed(fixture)
        files.arm(.nothing)
        take()
        return try taken.withLock { try $0.points.map { try $0.get() } }
    }

    /// The state of a directory, which differs after each change.
    private static func state(of path: String) -> [String] {
        var status = stat()
        guard lstat(path, &status) == 0 else { return [] }
        let own = "\(path) \(status.st_ino) \(status.st_size) \(status.st_ctim)"
        guard status.st_mode & S_IFMT == S_IFDIR else { return [own] }
        return ((try? LinuxFileSystem().list(path)) ?? []).reduce(into: [own]) { $0 += state(of: path + "/" + $1.name) }
    }

    /// Combines each state of the files with each earlier state of the index: with synchronous=NORMAL any suffix of its
    /// transactions may be lost. Points that are between the same two transactions have the same index.
    static func eachPowerCut(
        _ points: [CrashPoint], _ check: (TemporaryDirectory, Comment) throws -> Void
    ) throws {
        for files in points {
            var tried: [[UInt8]] = []
            for index in points[...files.number] {
                let log = (try? TemporaryDirectory.read(index.directory.state + "/index.sqlite-wal")) ?? []
                if tried.contains(log) { continue }
                tried.append(log)
                let situation: Comment = "files of point \(files.number), index of point \(index.number)"
                try check(try files.directory.copied(withStateOf: index.directory), situation)
            }
        }
    }

    /// Runs an operation once for each of its system calls, with a plan for that call.
    ///
    /// - Parameter check: checks the state afterwards.
    static func eachCall(
        of deed: (CacheFixture) throws -> Void, on make: (FailingFileSystem) throws -> CacheFixture,
        _ plan: (Int) -> FailingFileSystem.Plan, _ check: (CacheFixture, Comment) throws -> Void
    ) throws {
        var number = 1
        var failures = 0
        while true {
            let files = FailingFileSystem()
            let fixture = try make(files)
            files.arm(plan(number))
            do {
                try deed(fixture)
            } catch is CacheError {
                failures += 1
            }
            let calls = files.calls
            files.arm(.nothing)
            if calls.count < number { break }
            try check(fixture, "call \(number), \(calls[number - 1])")
            number += 1
        }
        #expect(failures > 3)
    }
}
