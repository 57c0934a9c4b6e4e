import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

extension TemporaryDirectory {
    /// A directory for a cache and its index. It is in memory, because thousands of these are made.
    static func forCache() throws -> TemporaryDirectory { try TemporaryDirectory(below: parentInMemory) }

    var cache: String { path + "/cache" }
    var state: String { path + "/state" }

    /// Copies a tree as a crash would leave it: modes, times and hard links are kept.
    static func copy(_ source: String, to destination: String, links: inout [UInt64: String]) throws {
        var status = stat()
        try #require(stat(source, &status) == 0)
        try #require(mkdir(destination, status.st_mode & 0o7777) == 0)
        for entry in try LinuxFileSystem().list(source) {
            let (from, to) = (source + "/" + entry.name, destination + "/" + entry.name)
            try #require(lstat(from, &status) == 0)
            if status.st_mode & S_IFMT == S_IFDIR {
                try copy(from, to: to, links: &links)
            } else if let target = try LinuxFileSystem().linkTarget(from) {
                try #require(symlink(target, to) == 0)
            } else if let linked = links[UInt64(status.st_ino)] {
                try #require(link(linked, to) == 0)
            } else {
                try write(read(from), to: to)
                try #require(chmod(to, status.st_mode & 0o7777) == 0)
                links[UInt64(status.st_ino)] = to
            }
        }
    }

    /// A copy of both directories, if they exist.
    ///
    /// - Parameter other: the directory whose index is copied; nil: this one.
    func copied(withStateOf other: TemporaryDirectory? = nil) throws -> TemporaryDirectory {
        let copy = try TemporaryDirectory.forCache()
        var links: [UInt64: String] = [:]
        for (source, target) in [(cache, copy.cache), ((other ?? self).state, copy.state)]
        where try LinuxFileSystem().status(source) != nil {
            try Self.copy(source, to: target, links: &links)
        }
        return copy
    }

    /// A directory with an `index.sqlite` of an earlier format.
    static func index(
        ofVersion version: Int, _ fill: (SQLiteDatabase) throws(SQLiteError) -> Void
    ) throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory.forCache()
        let database = try SQLiteDatabase(path: directory.path + "/index.sqlite", busyTimeout: 1000)
        for step in CacheIndex.migrations.prefix(version) { try database.execute(step) }
        try database.execute(
            "PRAGMA application_id = \(CacheIndex.applicationID); PRAGMA user_version = \(version)")
        try fill(database)
        return directory
    }

    /// Replaces a file with another one that has the same content.
    static func touch(_ path: String) throws {
        let times = [timeval(tv_sec: 1, tv_usec: 0), timeval(tv_sec: 1, tv_usec: 0)]
        try #require(utimes(path, times) == 0, "\(path)")
    }

    static func mode(_ path: String) throws -> UInt32 {
        try #require(try LinuxFileSystem().status(path)).mode
    }
}

/// The operations that most tests use.
struct CacheFixture {
    let directory: TemporaryDirectory
    var cache: LocalCache
    let report: RecoveryReport

    init(
        _ directory: TemporaryDirectory? = nil, verifiesAll: Bool = false,
        fileSystem: any FileSystem = LinuxFileSystem(), reserve: FreeSpaceReserve = .none, limit: Int64? = nil,
        waitForSpace: @escaping @Sendable (Int) -> Bool = { _ in false },
        removed: @escaping @Sendable (RemovedContent) -> Void = { _ in },
        rebuilt: @escaping @Sendable (RecoveryReport.Index, String) -> Void = { _, _ in },
        changes: HalfFinishedChanges = HalfFinishedChanges()
    ) throws {
        self.directory = try directory ?? .forCache()
        (cache, report) = try LocalCache.open(
            cacheDirectory: self.directory.cache, stateDirectory: self.directory.state, reserve: reserve,
            limit: limit, verifiesAll: verifiesAll, fileSystem: fileSystem, waitForSpace: waitForSpace,
            removed: removed, rebuilt: rebuilt, changes: changes)
    }

    /// A cache that is open already.
    init(of cache: LocalCache, in directory: TemporaryDirectory) {
        (self.cache, self.directory) = (cache, directory)
        report = RecoveryReport(index: .opened)
    }

    @discardableResult
    func commit(
        _ text: String, to destination: CacheDestination = .jwks, validators: [BoundValidators] = [],
        truncated: Bool = false, isCheck: Bool = true, at seconds: Int64 = 1000, contentExpires: Int64? = nil
    ) throws -> CommitOutcome {
        let pending = try cache.begin(destination)
        try pending.write(Array(text.utf8))
        return try pending.commit(
            validators: validators, truncated: truncated, isCheck: isCheck, run: 7, at: WallTime(seconds: seconds),
            contentExpires: contentExpires.map(WallTime.init(seconds:)))
    }

    /// Rejects content, as a check does.
    @discardableResult
    func reject(
        _ text: String, because reason: String = "too short", tag: String? = "2", at seconds: Int64 = 1001
    ) throws -> RejectionOutcome {
        let pending = try cache.begin(.jwks)
        try pending.write(Array(text.utf8))
        return try pending.reject(
            because: reason, validators: tag.map { [.tag($0)] } ?? [], at: WallTime(seconds: seconds))
    }

    func reader(_ file: String = "jwks.json") throws -> String {
        String(decoding: try TemporaryDirectory.read(directory.cache + "/current/" + file), as: UTF8.self)
    }

    /// The published content; nil if there is no file.
    func readerIfAny() throws -> String? {
        try LinuxFileSystem().status(directory.cache + "/current/jwks.json") == nil ? nil : reader()
    }

    func names(_ path: String) throws -> [String] {
        try LinuxFileSystem().list(directory.cache + "/" + path).map(\.name).sorted()
    }
}

extension CacheContext {
    /// Makes all changes of these tables of the index fail for lack of space (SQLITE_FULL): they would need a page of a
    /// temporary table, which may have no more pages.
    func fill(_ tables: [String]) throws {
        try withIndex { (index) throws(SQLiteError) in
            try index.database.execute(
                "CREATE TEMP TABLE IF NOT EXISTS ballast (bytes); PRAGMA temp.max_page_count = 1")
            for table in tables {
                for change in ["INSERT", "UPDATE", "DELETE"] {
                    try index.database.execute(
                        """
                        CREATE TEMP TRIGGER \(table)_\(change) BEFORE \(change) ON main.\(table)
                        BEGIN INSERT INTO ballast VALUES (zeroblob(100000)); END
                        """)
                }
            }
        }
    }

    /// There is space again.
    func free() throws {
        try withIndex { (index) throws(SQLiteError) in
            let names = try index.database.rows("SELECT name FROM temp.sqlite_schema WHERE type = 'trigger'") {
                $0.text(0)
            }
            for name in names { try index.database.execute("DROP TRIGGER temp.\(name)") }
        }
        index.writer.endBlock()
    }
}

extension CacheDestination {
    static let jwks = CacheDestination(pipeline: "jwks", file: "jwks.json", keep: 2)
}

extension CurrentGeneration {
    /// The generation without its revision, to compare it.
    var withoutRevision: CurrentGeneration {
        var generation = self
        generation.revision = 0
        return generation
    }
}

extension Validators {
    static func tag(_ tag: String) -> Validators { Validators(entityTag: tag) }
}

extension BoundValidators {
    static func tag(_ tag: String, boundTo binding: String = "https://example.com/jwks") -> BoundValidators {
        BoundValidators(binding: binding, .tag(tag))
    }
}
