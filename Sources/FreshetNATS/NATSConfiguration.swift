/// The servers of a client, its credential, and its limits.
public struct NATSConfiguration: Sendable {
    /// The servers, which belong to one cluster; the client uses one of them at a time. At least one.
    public var servers: [NATSServerAddress]
    /// The name of the client in the server's reports. It is not secret.
    public var name: String
    /// The NKEY of the user; nil: the server needs no credential, or identifies the client by its certificate.
    public var credential: NKeySeed?
    public var connection = NATSConnectionOptions()
    /// The first tokens of the subjects for replies. The user needs the right to subscribe to `PREFIX.>`.
    public var inboxPrefix: NATSSubject
    public var limits = NATSLimits()
    public var timing = NATSTiming()

    /// - Parameters:
    ///   - servers: the servers.
    ///   - name: the name of the client in the server's reports.
    ///   - credential: the NKEY of the user.
    public init(servers: [NATSServerAddress], name: String, credential: NKeySeed? = nil) {
        self.servers = servers
        self.name = name
        self.credential = credential
        inboxPrefix = NATSSubject(trusted: "_INBOX")
    }
}

/// How a connection is made.
public struct NATSConnectionOptions: Hashable, Sendable {
    /// The files of a client certificate and its key, both in PEM.
    public struct ClientCertificate: Hashable, Sendable {
        /// The path of the certificate and its chain.
        public var certificate: String
        /// The path of the key, which needs no passphrase.
        public var key: String

        public init(certificate: String, key: String) {
            self.certificate = certificate
            self.key = key
        }
    }

    /// A file of PEM certificates that replaces the system's authorities; nil: the system's authorities, which take
    /// about 200 KiB more memory while connected.
    public var certificateAuthority: String?
    public var clientCertificate: ClientCertificate?
    /// The most time to resolve the name, to connect and for TLS.
    public var connectTimeout: Duration
    /// The URL of a proxy, which gets CONNECT; nil: that of the environment.
    public var proxy: String?

    public init(
        certificateAuthority: String? = nil, clientCertificate: ClientCertificate? = nil,
        connectTimeout: Duration = .seconds(10), proxy: String? = nil
    ) {
        self.proxy = proxy
        self.certificateAuthority = certificateAuthority
        self.clientCertificate = clientCertificate
        self.connectTimeout = connectTimeout
    }
}

/// The limits of a client. Each bounds memory that a server, or other clients through it, could fill.
public struct NATSLimits: Hashable, Sendable {
    /// The longest received payload, in bytes; a longer message is dropped.
    public var payload: Int
    /// The most bytes that wait to be sent. It has to be larger than the longest message that is sent.
    public var outgoing: Int
    /// The most requests that wait for replies.
    public var requests: Int
    /// The most subscriptions.
    public var subscriptions: Int

    public init(payload: Int = 1 << 20, outgoing: Int = 2 << 20, requests: Int = 256, subscriptions: Int = 256) {
        self.payload = payload
        self.outgoing = outgoing
        self.requests = requests
        self.subscriptions = subscriptions
    }
}

/// The buffer of a subscription. Messages that do not fit are dropped and counted.
public struct NATSBufferLimits: Hashable, Sendable {
    /// The most messages.
    public var messages: Int
    /// The most bytes of their subjects, headers and payloads.
    public var bytes: Int

    public init(messages: Int = 1_024, bytes: Int = 1 << 20) {
        self.messages = messages
        self.bytes = bytes
    }
}

/// The limits of several replies to one request.
public struct NATSReplyLimits: Hashable, Sendable {
    /// The most replies.
    public var replies: Int
    /// The most bytes of their subjects, headers and payloads together.
    public var bytes: Int
    /// Whether replies that cannot be used are left out. Otherwise the request fails.
    public var skipsUnusable: Bool

    public init(replies: Int = 1_024, bytes: Int = 4 << 20, skipsUnusable: Bool = false) {
        self.replies = replies
        self.bytes = bytes
        self.skipsUnusable = skipsUnusable
    }
}

/// The times of a client.
public struct NATSTiming: Hashable, Sendable {
    /// The first limit of the random delay before an attempt to connect. It doubles with each failed round of all
    /// servers, up to ``longestBackoff``.
    ///
    /// The delay is random from zero to the limit ("full jitter"): when a server with 10,000 clients restarts, they
    /// come back spread over this time.
    public var backoff: Duration
    /// The largest limit of the delay.
    public var longestBackoff: Duration
    /// The pause after a server refused the credential, ± 10 %. An administrator has to repair that.
    public var refusedBackoff: Duration
    /// A connection that ends sooner than this counts as a failed attempt.
    public var stableAfter: Duration
    /// The most time for the server's first answers.
    public var handshakeTimeout: Duration
    /// The longest time without a byte from the server before the client sends PING. nats-server itself sends PING
    /// every two minutes by default, so that an idle connection wakes this process half a time a minute.
    public var silence: Duration
    /// The most time for the answer to PING.
    public var pongTimeout: Duration

    public init(
        backoff: Duration = .seconds(2), longestBackoff: Duration = .seconds(120),
        refusedBackoff: Duration = .seconds(3_600), stableAfter: Duration = .seconds(30),
        handshakeTimeout: Duration = .seconds(10), silence: Duration = .seconds(150),
        pongTimeout: Duration = .seconds(10)
    ) {
        self.backoff = backoff
        self.longestBackoff = longestBackoff
        self.refusedBackoff = refusedBackoff
        self.stableAfter = stableAfter
        self.handshakeTimeout = handshakeTimeout
        self.silence = silence
        self.pongTimeout = pongTimeout
    }
}

extension NATSMessage {
    /// The bytes for which the message counts in limits. The fixed part stands for the memory of a value without
    /// content.
    var weight: Int {
        headers.fields.reduce(64 + subject.utf8.count + (reply?.utf8.count ?? 0) + payload.count) {
            $0 + 64 + $1.name.utf8.count + $1.value.utf8.count
        }
    }
}
