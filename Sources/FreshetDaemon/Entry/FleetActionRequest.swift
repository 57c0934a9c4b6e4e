import FreshetControl
import FreshetNATS
import FreshetSystemd
import Glibc

/// The action of the option `--fleet`.
package enum FleetAction: String, CaseIterable, Sendable {
    /// Create the buckets, or change their configuration.
    case setup
    /// Examine servers, rights and buckets.
    case doctor
    /// Show the public key of a seed.
    case key
    /// Print the state of the fleet as JSON.
    case status
    /// Demand a check of a pipeline.
    case refresh
    /// Halt the roll-out of a pipeline, or let it go on.
    case halt, resume

    /// Whether it is about one pipeline.
    package var needsPipeline: Bool { [.refresh, .halt, .resume].contains(self) }
}

/// An action about a fleet, with the seed of its user.
package struct FleetActionRequest: Sendable {
    let action: FleetAction
    /// Nil: that of the configured credential.
    let seed: NKeySeed?
    /// Whether to act without a question.
    package var isConfirmed = false
    /// The number of servers that keep each bucket.
    package var replicas: UInt32 = 1
    package var pipelines: [String] = []
    /// How long to wait for an answer of the fleet.
    package var patience: Duration = .seconds(60)

    /// Reads the seed, or writes a new one, and prints its public key if that is the action.
    ///
    /// - Returns: nil: it failed, and the error is printed.
    package static func make(_ action: FleetAction, seed path: String?, isNew: Bool) -> FleetActionRequest? {
        do throws(NATSError) {
            if isNew, let path { try create(path) }
            let seed: NKeySeed? = if let path { try NKeySeed(contentsOf: path) } else { nil }
            if action == .key, let seed, !StandardStream.answer("\(seed.publicKey)\n") { return nil }
            return FleetActionRequest(action: action, seed: seed)
        } catch {
            StandardStream.write("freshetd: \(PlainText.escaping("\(path ?? ""): \(error)"))\n", to: STDERR_FILENO)
            return nil
        }
    }

    /// Writes a new seed to a file that does not exist, readable by its owner only.
    private static func create(_ path: String) throws(NATSError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .invalidSeed("cannot create the file: \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        guard StandardStream.write(Array("\(NKeySeed.makeText())\n".utf8)[...], to: descriptor), fsync(descriptor) == 0
        else { throw .invalidSeed("cannot write the file: \(String(cString: strerror(errno)))") }
    }
}
