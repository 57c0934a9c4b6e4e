import FreshetControl
import FreshetFleet
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
    /// Print accounts for the configuration of nats-server.
    case accounts
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
    /// Whether to create the mirror of this site instead of the buckets.
    package var isForMirror = false
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

    /// Prints the accounts of nats-server for the keys of a fleet.
    ///
    /// - Parameters:
    ///   - users: each `ROLE=KEY`.
    ///   - domain: the domain of JetStream that has the buckets; nil: there is none.
    ///   - isLeaf: whether the server is a leaf node of that domain.
    ///   - hasMirror: whether the leaf node has a mirror.
    /// - Returns: whether the text was written.
    package static func printAccounts(_ users: [String], domain: String?, isLeaf: Bool, hasMirror: Bool) -> Bool {
        let roles = FleetAccounts.Role.allCases.map(\.rawValue)
        func failed(_ reason: String) -> Bool {
            StandardStream.write("freshetd: \(PlainText.escaping(reason))\n", to: STDERR_FILENO)
            return false
        }
        var known: [(role: FleetAccounts.Role, key: NKeyPublicKey)] = []
        for user in users {
            let parts = user.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2, let role = FleetAccounts.Role(rawValue: parts[0]) else {
                return failed("'\(user)' is not ROLE=KEY with a role of \(roles.joined(separator: ", "))")
            }
            do throws(NATSError) {
                let key = try NKeyPublicKey(parts[1])
                guard !known.contains(where: { $0.key == key }) else {
                    return failed("the key \(key) is there twice; a user of nats-server has one role")
                }
                known.append((role, key))
            } catch {
                return failed("'\(user)': \(error)")
            }
        }
        if known.contains(where: { $0.role == .site }), isLeaf || domain == nil {
            return failed("the role site is for the servers that have the buckets, and needs the option --domain")
        }
        for role in isLeaf ? [] : [FleetAccounts.Role.admin, .fetch] where !known.contains(where: { $0.role == role }) {
            return failed("a fleet needs a user with the role \(role.rawValue): add \(role.rawValue)=KEY")
        }
        return StandardStream.answer(FleetAccounts(known, domain: domain, isLeaf: isLeaf, hasMirror: hasMirror).text)
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
