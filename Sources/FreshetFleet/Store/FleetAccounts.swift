package import FreshetNATS

/// The accounts of nats-server for a fleet, as text for its configuration.
///
/// Rights of users are not enough in one account: a user can let the server store a message that the user may not store,
/// by a request whose answer has a stream's subject as its address. The buckets are in an account of their own, and the
/// other users import only what they need from it; such an answer stays in their own account.
package struct FleetAccounts: Sendable {
    /// What a user may do.
    package enum Role: String, CaseIterable, Sendable {
        /// Create buckets and mirrors, and change their configuration.
        case admin
        /// Publish records: machines with `role: fetch`.
        case fetch
        /// Read records and report: machines with `role: follow`.
        case follow
        /// Read reports and give orders.
        case `operator`
        /// Connect the leaf node of a site, for all its users.
        case site

        /// The account of the users.
        fileprivate var account: String {
            switch self {
            case .admin, .fetch, .site: "STORE"
            case .follow: "MEMBERS"
            case .operator: "OPERATORS"
            }
        }

        /// The buckets that it reads.
        private var read: [FleetBucket] {
            switch self {
            case .admin, .fetch, .operator, .site: FleetBucket.allCases
            case .follow: [.head, .body, .claim, .status]
            }
        }

        /// The buckets that it writes.
        private var written: [FleetBucket] {
            switch self {
            case .admin: []
            case .fetch: [.head, .body, .claim, .status, .report]
            case .follow: [.status, .report]
            case .operator: [.want]
            case .site: FleetBucket.allCases
            }
        }

        /// The requests that it may make.
        ///
        /// - Parameter domain: the domain of JetStream that has the buckets; nil: that of the server.
        fileprivate func services(in domain: String?) -> [Service] {
            let (api, writes) = domain.map { ("$JS.\($0).API.", "$JS.\($0).API.") } ?? ("$JS.API.", "")
            var services = written.map { Service("\(writes)\($0.prefix)>") }
            for bucket in read {
                services.append(Service("\(api)DIRECT.GET.\(bucket.stream)", hasSeveralAnswers: true))
                services.append(Service("\(api)DIRECT.GET.\(bucket.stream).>"))
            }
            // Other accounts have no JetStream of their own, whose answer to this is an error.
            if account == Self.admin.account {
                services += FleetBucket.allCases.map { Service("\(api)STREAM.INFO.\($0.stream)") }
            }
            if self == .fetch || self == .site {
                services.append(Service("\(api)STREAM.PURGE.\(FleetBucket.body.stream)"))
            }
            if self != .operator { services.append(Service("\(FleetClient.damage)>")) }
            guard self == .site else { return services }
            // A mirror at the site reads by a consumer.
            for bucket in FleetBucket.mirrored {
                services.append(Service("\(api)CONSUMER.CREATE.\(bucket.stream)"))
                services.append(Service("\(api)CONSUMER.CREATE.\(bucket.stream).>"))
                services.append(Service("$JS.FC.\(bucket.stream).>"))
            }
            return services
        }

        /// The requests to a mirror of a site. The server removes its own domain from subjects before it looks at rights.
        fileprivate var mirrorServices: [Service] {
            let api = "$JS.API."
            return FleetBucket.mirrored.flatMap { bucket in
                let info = Service("\(api)STREAM.INFO.\(bucket.stream)")
                return [
                    Service("\(api)DIRECT.GET.\(bucket.stream)", hasSeveralAnswers: true),
                    Service("\(api)DIRECT.GET.\(bucket.stream).>"),
                ] + (account == Self.admin.account ? [info] : [])
            }
        }

        /// What it may receive.
        fileprivate var subscriptions: [String] {
            // The answers to the users of other accounts of a leaf node, and to its mirror.
            ["ft.>", "_INBOX.>"] + (self == .site ? ["_R_.>", "$JSC.R.>"] : [])
        }
    }

    fileprivate struct Service: Hashable {
        let subject: String
        let hasSeveralAnswers: Bool

        init(_ subject: String, hasSeveralAnswers: Bool = false) {
            self.subject = subject
            self.hasSeveralAnswers = hasSeveralAnswers
        }
    }

    private let users: [(role: Role, key: NKeyPublicKey)]
    private let domain: String?
    private let isLeaf: Bool
    private let hasMirror: Bool

    /// - Parameters:
    ///   - domain: the domain of JetStream that has the buckets, for sites.
    ///   - isLeaf: whether the text is for a leaf node of that domain.
    ///   - hasMirror: whether the leaf node has a mirror; otherwise it stores nothing.
    package init(
        _ users: [(role: Role, key: NKeyPublicKey)], domain: String? = nil, isLeaf: Bool = false,
        hasMirror: Bool = false
    ) {
        self.users = users
        self.domain = domain
        self.isLeaf = isLeaf
        self.hasMirror = hasMirror
    }

    private func services(_ role: Role) -> [Service] {
        role.services(in: isLeaf || role == .site ? domain : nil) + (hasMirror ? role.mirrorServices : [])
    }

    /// The block `accounts`.
    package var text: String {
        let others: [Role] = [.follow, .operator]
        var lines = ["accounts {", "  STORE {"]
        if !isLeaf || hasMirror { lines.append("    jetstream: enabled") }
        lines += userLines([.admin, .fetch, .site])
        lines.append("    exports: [")
        var exported: Set<Service> = []
        for service in others.flatMap(services) where exported.insert(service).inserted {
            let accounts = others.filter { services($0).contains(service) }.map(\.account).joined(separator: ", ")
            let answers = service.hasSeveralAnswers ? "response: stream, " : ""
            lines.append("      { service: \"\(service.subject)\", \(answers)accounts: [\(accounts)] }")
        }
        for subject in Self.notices {
            lines.append(
                "      { stream: \"\(subject)\", accounts: [\(others.map(\.account).joined(separator: ", "))] }")
        }
        lines += ["    ]", "  }"]
        for role in others {
            lines.append("  \(role.account) {")
            lines += userLines([role])
            lines.append("    imports: [")
            lines += services(role).map { "      { service: { account: STORE, subject: \"\($0.subject)\" } }" }
            lines += Self.notices.map { "      { stream: { account: STORE, subject: \"\($0)\" } }" }
            lines += ["    ]", "  }"]
        }
        return (lines + ["}", ""]).joined(separator: "\n")
    }

    /// What the buckets republish.
    private static var notices: [String] { FleetBucket.allCases.compactMap(\.republished).map { "\($0)>" } }

    private func userLines(_ roles: [Role]) -> [String] {
        var lines = ["    users: ["]
        for user in users where roles.contains(user.role) {
            guard user.role != .admin else {
                lines.append("      { nkey: \(user.key) }  # admin")
                continue
            }
            let publish = services(user.role).map { "\"\($0.subject)\"" }.joined(separator: ", ")
            let subscribe = user.role.subscriptions.map { "\"\($0)\"" }.joined(separator: ", ")
            lines += [
                "      { nkey: \(user.key), permissions: {  # \(user.role.rawValue)",
                "          publish: [\(publish)],",
                "          subscribe: [\(subscribe)] } }",
            ]
        }
        return lines + ["    ]"]
    }
}
