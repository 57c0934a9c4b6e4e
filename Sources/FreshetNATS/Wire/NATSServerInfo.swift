import FreshetVarlink

/// The facts that a server sends when a connection begins, and again when they change. They are the server's own
/// statements; texts are as it sent them.
public struct NATSServerInfo: Hashable, Sendable {
    /// Unique for each start of a server.
    public var serverID = ""
    public var serverName = ""
    /// Such as `2.15.1`; compare it with ``isAtLeast(_:_:)``.
    public var version = ""
    /// The name of the server's cluster; nil: it is in no cluster.
    public var cluster: String?
    /// The JetStream domain; nil: the server has none.
    public var domain: String?
    /// The server's number for this connection.
    public var clientID: UInt64?
    /// The longest message that the server accepts, headers included, in bytes.
    public var maxPayload = 1 << 20
    /// Whether the server accepts headers.
    public var supportsHeaders = false
    public var hasJetStream = false
    public var requiresAuthentication = false
    public var requiresTLS = false
    /// Whether the server shuts down soon ("lame duck"): clients should connect to another server.
    public var isShuttingDown = false
    /// The text that an NKEY signs; nil: the server asks for no signature.
    var nonce: String?

    init() {}

    /// Whether the version is this or a later one. An unreadable version is older than any.
    ///
    /// - Parameters:
    ///   - major: the first number.
    ///   - minor: the second number.
    public func isAtLeast(_ major: Int, _ minor: Int) -> Bool {
        let parts = version.utf8.prefix(32).split(separator: UInt8(ascii: "."))
            .prefix(2).map { Int(String(decoding: $0, as: UTF8.self)) }
        guard parts.count == 2, let first = parts[0], let second = parts[1] else { return false }
        return (first, second) >= (major, minor)
    }
}

extension NATSServerInfo {
    /// The longest text that is kept, in bytes: the names of servers, clusters and domains are short.
    private static let longestText = 512

    /// Reads the JSON text of INFO. Members that are not needed are skipped, among them the addresses of other servers:
    /// this client connects only to the servers of its configuration.
    ///
    /// - Returns: nil if the text is not a JSON object, or a member has the wrong type.
    init?(json: [UInt8]) {
        guard let members = try? JSONScanner.members(of: json) else { return nil }
        for member in members {
            let value = json[member.value]
            switch member.name {
            case "server_id", "server_name", "version", "cluster", "domain", "nonce":
                guard value.count <= Self.longestText, let text = JSONScanner.string(member.value, of: json) else {
                    return nil
                }
                setText(member.name, text)
            case "client_id", "max_payload":
                guard let number = Int(String(decoding: value.prefix(20), as: UTF8.self)), number >= 0 else {
                    return nil
                }
                if member.name == "client_id" { clientID = UInt64(number) } else { maxPayload = number }
            case "headers", "jetstream", "auth_required", "tls_required", "ldm":
                let isTrue = value.elementsEqual("true".utf8)
                guard isTrue || value.elementsEqual("false".utf8) else { return nil }
                setFlag(member.name, isTrue)
            default: break
            }
        }
    }

    private mutating func setText(_ name: String, _ text: String) {
        switch name {
        case "server_id": serverID = text
        case "server_name": serverName = text
        case "version": version = text
        case "cluster": cluster = text
        case "domain": domain = text
        default: nonce = text
        }
    }

    private mutating func setFlag(_ name: String, _ value: Bool) {
        switch name {
        case "headers": supportsHeaders = value
        case "jetstream": hasJetStream = value
        case "auth_required": requiresAuthentication = value
        case "tls_required": requiresTLS = value
        default: isShuttingDown = value
        }
    }
}
