import Glibc
import Synchronization

@testable import FreshetCache

/// The real file system with a hand on each call: it can fail the n-th, stop dead before it, or show a test the state
/// between any two.
final class FaultyFileSystem: FileSystem {
    enum Plan: Sendable {
        case nothing
        /// The n-th call fails, without effect; later ones work.
        case fail(at: Int, errno: Int32)
        /// The n-th call and all after it fail, as if the process were gone.
        case stop(at: Int)
    }

    private struct State {
        var plan = Plan.nothing
        var calls: [String] = []
        var observer: (@Sendable () -> Void)?
    }

    private let real = LinuxFileSystem()
    private let little = Mutex<(total: UInt64, used: UInt64)?>(nil)
    private let state = Mutex(State())

    /// Starts to count from 1 by a new plan.
    func arm(_ plan: Plan, observer: (@Sendable () -> Void)? = nil) {
        state.withLock { $0 = State(plan: plan, observer: observer) }
    }

    /// The calls since, by name.
    var calls: [String] { state.withLock { $0.calls } }

    private func enter(_ call: String, _ path: String) throws(SystemCallError) {
        let (fault, observer) = state.withLock { state -> (Int32?, (@Sendable () -> Void)?) in
            state.calls.append(call)
            switch state.plan {
            case .nothing: return (nil, state.observer)
            case .fail(let number, let errno): return (state.calls.count == number ? errno : nil, state.observer)
            case .stop(let number): return (state.calls.count >= number ? EIO : nil, state.observer)
            }
        }
        observer?()
        if let fault { throw SystemCallError(call: call, path: path, errno: fault) }
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
        guard let (total, used) = little.withLock({ $0 }) else { return try real.space(path) }
        var content: UInt64 = 0
        for directory in try real.list(path + "/generations") {
            for entry in try real.list(path + "/generations/" + directory.name) {
                let status = try real.status(path + "/generations/" + directory.name + "/" + entry.name)
                content += UInt64(status?.identity.size ?? 0)
            }
        }
        return FileSystemSpace(total: total, available: total - used - content)
    }

    /// From now on it has so many bytes, of which so many are used by others than the cache.
    func pretend(total: UInt64, used: UInt64) { little.withLock { $0 = (total, used) } }
}
