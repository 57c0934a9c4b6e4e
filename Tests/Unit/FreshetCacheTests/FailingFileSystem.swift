import Glibc
import Synchronization

@testable import FreshetCache

/// The real file system with control of each call: it can fail the n-th call, stop before it, or show a test the state
/// between any two calls.
final class FailingFileSystem: FileSystem {
    enum Plan: Sendable {
        case nothing
        /// The n-th call fails, without effect; later calls work.
        case fail(at: Int, errno: Int32)
        /// Each call of this name fails.
        case failEach(call: String, errno: Int32)
        /// The n-th call and all later calls fail, as if the process were killed.
        case stop(at: Int)
    }

    private struct State {
        var plan = Plan.nothing
        var calls: [String] = []
        var observer: (@Sendable () -> Void)?
        var hasInodes = true
    }

    /// Simulates a smaller file system.
    private struct Little {
        var total: UInt64
        var used: UInt64
        var isLate: Bool
        /// The most bytes that the cache has used.
        var most: UInt64 = 0
    }

    private let real = LinuxFileSystem()
    private let little = Mutex<Little?>(nil)
    private let state = Mutex(State())

    /// Starts a new plan; calls are counted from 1.
    ///
    /// - Parameter hasInodes: false if the file system reports that it has no inodes left.
    func arm(_ plan: Plan, hasInodes: Bool = true, observer: (@Sendable () -> Void)? = nil) {
        state.withLock { $0 = State(plan: plan, observer: observer, hasInodes: hasInodes) }
    }

    /// Removes the observer, which may refer to the owner of this object.
    func disarm() { arm(.nothing) }

    /// The names of the calls since then.
    var calls: [String] { state.withLock { $0.calls } }

    private func enter(_ call: String, _ path: String) throws(SystemCallError) {
        let (error, observer) = state.withLock { state -> (Int32?, (@Sendable () -> Void)?) in
            state.calls.append(call)
            switch state.plan {
            case .nothing: return (nil, state.observer)
            case .fail(let number, let errno): return (state.calls.count == number ? errno : nil, state.observer)
            case .failEach(call, let errno): return (errno, state.observer)
            case .failEach: return (nil, state.observer)
            case .stop(let number): return (state.calls.count >= number ? EIO : nil, state.observer)
            }
        }
        observer?()
        if let error { throw SystemCallError(call: call, path: path, errno: error) }
    }

    private func leave() { state.withLock { $0.observer }?() }

    func makeDirectory(_ path: String, mode: UInt32) throws(SystemCallError) -> Bool {
        try enter("mkdir", path)
        defer { leave() }
        return try real.makeDirectory(path, mode: mode)
    }

    func createFile(_ path: String) throws(SystemCallError) -> Int32 {
        try enter("create", path)
        defer { leave() }
        return try real.createFile(path)
    }

    func openFile(_ path: String) throws(SystemCallError) -> Int32 {
        try enter("open", path)
        return try real.openFile(path)
    }

    func openDirectory(_ path: String) throws(SystemCallError) -> Int32 {
        try enter("opendir", path)
        return try real.openDirectory(path)
    }

    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, path: String) throws(SystemCallError) {
        try enter("write", path)
        defer { leave() }
        try real.write(bytes, to: descriptor, path: path)
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, from descriptor: Int32, path: String
    ) throws(SystemCallError) -> Int {
        try enter("read", path)
        return try real.read(into: buffer, from: descriptor, path: path)
    }

    func resolve(_ path: String) throws(SystemCallError) -> String {
        try enter("realpath", path)
        return try real.resolve(path)
    }

    func setMode(_ mode: UInt32, of descriptor: Int32, path: String) throws(SystemCallError) {
        try enter("fchmod", path)
        defer { leave() }
        try real.setMode(mode, of: descriptor, path: path)
    }

    func setGroup(_ group: UInt32, of descriptor: Int32, path: String) throws(SystemCallError) {
        try enter("fchown", path)
        defer { leave() }
        try real.setGroup(group, of: descriptor, path: path)
    }

    func synchronize(_ descriptor: Int32, path: String) throws(SystemCallError) {
        try enter("fsync", path)
        defer { leave() }
        try real.synchronize(descriptor, path: path)
    }

    func close(_ descriptor: Int32) { real.close(descriptor) }

    func status(_ path: String) throws(SystemCallError) -> FileStatus? {
        try enter("lstat", path)
        return try real.status(path)
    }

    func link(_ path: String, to newPath: String) throws(SystemCallError) {
        try enter("link", newPath)
        defer { leave() }
        try real.link(path, to: newPath)
    }

    func rename(_ path: String, to newPath: String) throws(SystemCallError) {
        try enter("rename", newPath)
        defer { leave() }
        try real.rename(path, to: newPath)
    }

    func makeSymbolicLink(to target: String, at path: String) throws(SystemCallError) {
        try enter("symlink", path)
        defer { leave() }
        try real.makeSymbolicLink(to: target, at: path)
    }

    func linkTarget(_ path: String) throws(SystemCallError) -> String? {
        try enter("readlink", path)
        return try real.linkTarget(path)
    }

    func unlink(_ path: String) throws(SystemCallError) {
        try enter("unlink", path)
        defer { leave() }
        try real.unlink(path)
    }

    func removeDirectory(_ path: String) throws(SystemCallError) {
        try enter("rmdir", path)
        defer { leave() }
        try real.removeDirectory(path)
    }

    func list(_ path: String) throws(SystemCallError) -> [DirectoryEntry] {
        try enter("readdir", path)
        return try real.list(path)
    }

    func space(_ path: String) throws(SystemCallError) -> FileSystemSpace {
        try enter("statvfs", path)
        guard little.withLock({ $0 != nil }) else {
            var space = try real.space(path)
            if state.withLock({ !$0.hasInodes }) { space.hasInodes = false }
            return space
        }
        let content = try bytes(path + "/generations") + bytes(path + "/sets")
        return little.withLock { little in
            guard var known = little else { return FileSystemSpace(total: 0, available: 0) }
            known.most = max(known.most, content)
            little = known
            let used = known.used + (known.isLate ? known.most : content)
            return FileSystemSpace(total: known.total, available: known.total - min(known.total, used))
        }
    }

    /// The bytes of all files below a directory.
    private func bytes(_ path: String) throws(SystemCallError) -> UInt64 {
        var bytes: UInt64 = 0
        for entry in try real.list(path) {
            guard let status = try real.status(path + "/" + entry.name) else { continue }
            bytes += status.isDirectory ? try self.bytes(path + "/" + entry.name) : UInt64(status.identity.size)
        }
        return bytes
    }

    /// Sets the simulated size, and the bytes that are used by other programs.
    ///
    /// - Parameter isLate: removed files do not free space, as if a program had all of them open.
    func pretend(total: UInt64, used: UInt64, isLate: Bool = false) {
        little.withLock { $0 = Little(total: total, used: used, isLate: isLate) }
    }
}
