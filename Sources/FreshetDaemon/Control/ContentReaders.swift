import FreshetPipelines
import FreshetVarlink
import Glibc
import Synchronization

/// Decides which users may read the published file of each pipeline, by the mode and the group of its configuration.
/// The same rule decides which clients get text that may quote the content, and whether the journal contains such text.
///
/// Safe to call from any thread.
final class ContentReaders: Sendable {
    private struct Right: Hashable {
        var mode: UInt32
        /// Nil: the daemon's own group.
        var group: UInt32?
    }

    private struct State {
        var rights: [String: Right] = [:]
        var groups: [String: UInt32] = [:]
    }

    private let state = Mutex(State())
    private let owner: UInt32
    private let ownGroup: UInt32

    /// - Parameters:
    ///   - owner: the user that the files belong to.
    ///   - ownGroup: the group of files without `cache.group`.
    init(owner: UInt32 = geteuid(), ownGroup: UInt32 = getegid()) {
        self.owner = owner
        self.ownGroup = ownGroup
    }

    /// - Parameter groups: the numbers of the groups that a configuration names.
    func setGroups(_ groups: [String: UInt32]) {
        state.withLock { $0.groups = groups }
    }

    /// Sets the definition of a pipeline.
    func set(_ definition: PipelineDefinition) {
        state.withLock { state in
            state.rights[definition.name] = Right(
                mode: definition.cacheMode,
                // An unknown group gives no user a right.
                group: definition.cache.group.map { state.groups[$0] ?? .max })
        }
    }

    func remove(_ name: String) {
        state.withLock { _ = $0.rights.removeValue(forKey: name) }
    }

    /// Whether every user may read the published file; false for an unknown pipeline.
    func isPublic(_ name: String) -> Bool {
        state.withLock { $0.rights[name].map { $0.mode & 0o004 != 0 } ?? false }
    }

    /// Decides whether a peer may read the published file, with the kernel's rules for files (path_resolution(7)).
    func mayRead(_ name: String, _ peer: VarlinkPeer) -> Bool {
        if peer.user == 0 || peer.user == owner { return true }
        guard let right = state.withLock({ $0.rights[name] }) else { return false }
        if peer.isMember(of: right.group ?? ownGroup) { return right.mode & 0o040 != 0 }
        return right.mode & 0o004 != 0
    }
}
