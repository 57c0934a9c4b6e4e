import FreshetTestKit
import Synchronization

/// A scripted server: each load takes some frames and fails at its end if its name is down. The start and the
/// cancellation of each load are logged.
final class Origin: Sendable {
    struct Down: Error, CustomStringConvertible {
        let description = "down"
    }

    private struct State {
        var down: Set<String> = []
        var log: [String] = []
    }

    private let stage: MarbleStage
    private let state = Mutex(State())

    init(on stage: MarbleStage) {
        self.stage = stage
    }

    /// The loads that began and were cancelled, in order.
    var log: [String] { state.withLock { $0.log } }

    func takeDown(_ name: String) {
        state.withLock { _ = $0.down.insert(name) }
    }

    func bringUp(_ name: String) {
        state.withLock { _ = $0.down.remove(name) }
    }

    func load(_ name: String, frames: Int) async throws {
        state.withLock { $0.log.append(name) }
        do {
            try await stage.clock.sleep(for: stage.frame * frames)
        } catch {
            state.withLock { $0.log.append("\(name) cancelled") }
            throw error
        }
        if state.withLock({ $0.down.contains(name) }) { throw Down() }
    }
}
