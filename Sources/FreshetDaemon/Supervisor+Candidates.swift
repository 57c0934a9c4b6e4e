import FreshetCache
import FreshetControl
import FreshetPipelines
import FreshetSystemd
import FreshetVarlink
import Logging

/// What checks refused, as the operator looks at it and accepts it.
extension Supervisor {
    func candidate(of name: String, for peer: VarlinkPeer) async throws(ControlError) -> any ControlContent {
        let store = try cacheStore()
        do throws(CacheError) {
            if let content = try await store.openRefused(of: name, for: FileReader(peer)) {
                return GenerationContent(name: name, stored: content, store: store)
            }
        } catch {
            throw ControlError(error, of: name)
        }
        throw .notReadable(name: name, number: nil)
    }

    func accept(
        _ name: String, _ digest: String?, asker: String
    ) async throws(ControlError) -> ControlMessage.RolledBack {
        let store = try cacheStore()
        let hosted = try hosted(name)
        let outcome: RollbackOutcome
        do throws(CacheStore.RollbackError) {
            outcome = try await store.accept(hosted.definition, digest)
        } catch {
            throw ControlError(error, of: name)
        }
        let generation = OfferedGeneration(outcome.generation)
        hosted.runner.accepted(generation)
        let detail = "accepted as generation \(generation.number) what a check had refused"
        changed(name, generation, detail: detail)
        log.say(
            .accepted,
            [
                .pipeline: .string(name), .generation: .stringConvertible(generation.number),
                .replaced: .string(outcome.replaced.map(String.init) ?? "none"), .asker: .string(asker),
            ])
        // For those who run after it, its copy is another one.
        commitNews.raise(name, "\(name) \(detail)")
        parts?.hooks.offer(name, generation, causes: "accept")
        return ControlMessage.RolledBack(generation: GenerationStatus(generation), replaced: outcome.replaced)
    }
}
