import FreshetCache
import FreshetControl
import FreshetPipelines
import FreshetSystemd
import FreshetVarlink
import Logging

/// Rejected candidates that the operator inspects and accepts.
extension Supervisor {
    func candidate(of name: String, for peer: VarlinkPeer) async throws(ControlError) -> any ControlContent {
        let store = try cacheStore()
        do throws(CacheError) {
            if let content = try await store.openRejected(of: name, for: FileReader(peer)) {
                return GenerationContent(name: name, stored: content, store: store)
            }
        } catch {
            throw ControlError(error, of: name)
        }
        throw .notReadable(name: name, number: nil)
    }

    func accept(
        _ name: String, _ digest: String?, caller: String
    ) async throws(ControlError) -> ControlMessage.RolledBack {
        let store = try cacheStore()
        let definition = try hosted(name).definition
        return try await choose(name, .accept, caller: caller) { () async throws(CacheStore.RollbackError) in
            try await store.accept(definition, digest)
        }
    }
}
