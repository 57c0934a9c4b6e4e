import FreshetPipelines
import FreshetVarlink
import Glibc
import Synchronization

/// Who may read the published file of each pipeline, by the mode and the group of its configuration. The same decides who is
/// shown text that may quote the content, and whether the journal has such text.
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
    func know(_ groups: [String: UInt32]) {
        state.withLock { $0.groups = groups }
    }

    /// A pipeline has this definition from now on.
    func set(_ definition: PipelineDefinition) {
        state.withLock { state in
            state.rights[definition.name] = Right(
                mode: definition.cacheMode,
                // A group that is not known gives nobody a right.
                group: definition.cache.group.map { state.groups[$0] ?? .max })
        }
    }

    func remove(_ name: String) {
        state.withLock { _ = $0.rights.removeValue(forKey: name) }
    }

    /// Whether everybody may read it; false for a pipeline that is not known.
    func isPublic(_ name: String) -> Bool {
        state.withLock { $0.rights[name].map { $0.mode & 0o004 != 0 } ?? false }
    }

    /// Decides as the kernel does for the file (path_resolution(7)).
    func mayRead(_ name: String, _ peer: VarlinkPeer) -> Bool {
        if peer.user == 0 || peer.user == owner { return true }
        guard let right = state.withLock({ $0.rights[name] }) else { return false }
        if peer.isMember(of: right.group ?? ownGroup) { return right.mode & 0o040 != 0 }
        return right.mode & 0o004 != 0
    }
}
