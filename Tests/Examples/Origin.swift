import FreshetTestKit
import Synchronization

/// A server as a script: each load takes some frames, those that are down fail at their end, and all that begins or is
/// cancelled is noted.
final class Origin: Sendable {
    struct Down: Error, CustomStringConvertible {
        let description = "down"
    }

    private struct State {
        var down: Set<String> = []
        var notes: [String] = []
    }

    private let stage: MarbleStage
    private let state = Mutex(State())

    init(on stage: MarbleStage) {
        self.stage = stage
    }

    /// What began and was cancelled, in order.
    var notes: [String] { state.withLock { $0.notes } }

    func takeDown(_ name: String) {
        state.withLock { _ = $0.down.insert(name) }
    }

    func bringUp(_ name: String) {
        state.withLock { _ = $0.down.remove(name) }
    }

    func load(_ name: String, frames: Int) async throws {
        state.withLock { $0.notes.append(name) }
        do {
            try await stage.clock.sleep(for: stage.frame * frames)
        } catch {
            state.withLock { $0.notes.append("\(name) cancelled") }
            throw error
        }
        if state.withLock({ $0.down.contains(name) }) { throw Down() }
    }
}
