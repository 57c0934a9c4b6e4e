import FreshetConfiguration
import FreshetEventLoop
import FreshetNATS
import FreshetSystemd

/// Why the configured fleet cannot be used.
struct FleetMembershipError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

extension FleetDefinition {
    /// The seed of the configured credential; nil: the servers need none. Blocks on its file.
    func seed(from credentials: Credentials) throws(FleetMembershipError) -> NKeySeed? {
        guard let name = credential else { return nil }
        let path: String
        do throws(CredentialError) {
            path = try credentials.file(named: name)
        } catch {
            throw FleetMembershipError("\(error.message); \(error.remedy)")
        }
        do throws(NATSError) {
            return try NKeySeed(contentsOf: path)
        } catch {
            throw FleetMembershipError("the credential '\(name)' cannot be used: \(error)")
        }
    }

    /// The configuration of a client for the servers.
    func connection(_ seed: NKeySeed?, named name: String) throws(FleetMembershipError) -> NATSConfiguration {
        do throws(NATSError) {
            var addresses: [NATSServerAddress] = []
            for server in servers { addresses.append(try NATSServerAddress(server)) }
            var configuration = NATSConfiguration(servers: addresses, name: name, credential: seed)
            configuration.connection.certificateAuthority = certificateAuthority
            (configuration.limits.subscriptions, configuration.limits.requests) = (4_096, 1_024)
            return configuration
        } catch {
            throw FleetMembershipError("fleet.servers: \(error)")
        }
    }

    func client(
        on loop: EventLoop, _ seed: NKeySeed?, named name: String
    ) throws(FleetMembershipError) -> NATSClient {
        NATSClient(loop, try connection(seed, named: name))
    }

    /// The keys whose records count.
    func publisherKeys() throws(FleetMembershipError) -> Set<NKeyPublicKey> {
        do throws(NATSError) {
            var keys: Set<NKeyPublicKey> = []
            for key in publishers { keys.insert(try NKeyPublicKey(key)) }
            return keys
        } catch {
            throw FleetMembershipError("fleet.publishers: \(error)")
        }
    }
}
