import FreshetPipelines

/// Reads `fleet`: of `freshet.yaml`, and of a pipeline.
struct FleetReader {
    let reader: DefinitionReader

    /// The most servers and publishers.
    static let mostServers = 32
    static let mostPublishers = 64
    /// The longest `grace` and `spread`.
    static let longestDelay: Duration = .seconds(3_600)

    // MARK: freshet.yaml

    func fleet(in file: Section) -> FleetDefinition? {
        guard let section = reader.section(.daemonFleet, "fleet", in: file) else { return nil }
        let name = required("name", in: section, .fleetName, remedy: "add the name of the fleet: name: prod")
        let servers = requiredList(
            "servers", in: section, .server, Self.mostServers,
            remedy: "add the URLs of the NATS servers: servers: [https://nats1.example:4222]")
        let publishers = requiredList(
            "publishers", in: section, .publicKey, Self.mostPublishers,
            remedy: "add the public keys of the machines that fetch: publishers: [U…]")
        let credential = reader.value("credential", in: section, .credentialName)
        let role: FleetDefinition.Role = reader.value("role", in: section, .choice()) ?? .follow
        if role == .fetch, section["credential"] == nil {
            reader.missing(
                section.location, section.path("credential"),
                "'role' is fetch, and there is no 'credential' to sign records with",
                remedy: "add the name of the credential with the NKEY seed: credential: fleet-nkey")
        }
        guard let name, !servers.isEmpty, !publishers.isEmpty else { return nil }
        var fleet = FleetDefinition(name: name, servers: servers, publishers: publishers)
        (fleet.credential, fleet.role) = (credential, role)
        fleet.certificateAuthority = reader.value("certificate-authority", in: section, .absolutePath)
        fleet.machine = reader.value("machine", in: section, .fleetName)
        fleet.domain = reader.value("domain", in: section, .fleetName)
        fleet.mirror = mirror(of: fleet.domain, in: section)
        fleet.spread = reader.value("spread", in: section, .duration(.zero...Self.longestDelay)) ?? fleet.spread
        fleet.fallback = fallback(in: section)
        return fleet
    }

    private func mirror(of domain: String?, in section: Section) -> String? {
        guard let mirror = reader.value("mirror", in: section, .fleetName), let entry = section["mirror"] else {
            return nil
        }
        guard let domain else {
            reader.addError(
                entry.value.location, section.path("mirror"), "there is 'mirror' without 'domain'",
                remedy: "add the domain that has the buckets: domain: hub")
            return nil
        }
        if mirror == domain {
            reader.addError(
                entry.value.location, section.path("mirror"), "'mirror' is the domain that has the buckets",
                remedy: "write the domain of the servers at this site")
        }
        return mirror
    }

    private func required<Value>(
        _ key: String, in section: Section, _ kind: ValueKind<Value>, remedy: String
    ) -> Value? {
        guard section[key] != nil else {
            reader.missing(section.location, section.path(key), "'fleet' has no '\(key)'", remedy: remedy)
            return nil
        }
        return reader.value(key, in: section, kind)
    }

    private func requiredList<Value: Hashable>(
        _ key: String, in section: Section, _ kind: ValueKind<Value>, _ most: Int, remedy: String
    ) -> [Value] {
        guard let values = reader.list(key, in: section, kind) else {
            reader.missing(section.location, section.path(key), "'fleet' has no '\(key)'", remedy: remedy)
            return []
        }
        if values.count > most {
            reader.addError(values[most].location, section.path(key), "'\(key)' has more than \(most) values")
        }
        if values.isEmpty, let entry = section[key], case .sequence(let nodes) = entry.value.content, nodes.isEmpty {
            reader.addError(entry.value.location, section.path(key), "'\(key)' is empty", remedy: remedy)
        }
        return values.map(\.value)
    }

    /// `fallback`: none, or keys with values.
    private func fallback(in section: Section) -> FleetDefinition.Fallback? {
        guard let entry = section["fallback"] else { return .standard }
        guard case .mapping = entry.value.content else {
            _ = reader.value("fallback", in: section, .none)
            return nil
        }
        var fallback = FleetDefinition.Fallback.standard
        guard let keys = reader.section(.daemonFallback, "fallback", in: section) else { return fallback }
        fallback.after = reader.value("after", in: keys, .duration(.seconds(1)...TimeSpan.longest)) ?? fallback.after
        fallback.rate = reader.value("rate", in: keys, .rate) ?? fallback.rate
        return fallback
    }

    // MARK: Pipelines

    /// Whether and how the pipeline is shared. A pipeline whose content may differ from machine to machine, or must not
    /// be readable by all members, cannot be shared.
    func sharing(
        in file: Section, _ stage: StageDefinition?, _ check: CheckRules, _ cache: CacheRules?
    ) -> FleetSharing? {
        guard let section = reader.section(.fleet, "fleet", in: file) else { return nil }
        let share: Share = reader.value("share", in: section, .choice()) ?? .none
        let grace = reader.value("grace", in: section, .duration(.zero...Self.longestDelay))
        let steps = rollOut(in: section)
        guard share == .copy, let entry = section["share"] else { return nil }
        if let obstacle = obstacle(stage, check, cache) {
            reader.addError(
                entry.value.location, section.path("share"), "'share: copy' is not possible: \(obstacle)",
                remedy: "leave 'share' out, so that each machine requests the content itself")
        }
        return FleetSharing(grace: grace ?? FleetSharing.defaultGrace, rollOut: steps)
    }

    private func rollOut(in section: Section) -> FleetSteps? {
        guard let keys = reader.section(.rollOut, "roll-out", in: section) else { return nil }
        var steps = FleetSteps.standard
        if let values = reader.list("steps", in: keys, .step) {
            for (value, next) in zip(values, values.dropFirst()) where next.value <= value.value {
                reader.addError(
                    next.location, keys.path("steps"), "each of the 'steps' has to be larger than the one before")
            }
            if values.count > Self.mostSteps {
                reader.addError(
                    values[Self.mostSteps].location, keys.path("steps"),
                    "'steps' has more than \(Self.mostSteps) values")
            }
            steps.percentages = values.map(\.value)
            // The content of a finished roll-out is that of the whole fleet.
            if steps.percentages.last != 100 { steps.percentages.append(100) }
        }
        steps.each = reader.value("each", in: keys, .duration(.seconds(1)...TimeSpan.longest)) ?? steps.each
        steps.failures = reader.value("failures", in: keys, .failures) ?? steps.failures
        return steps
    }

    /// The most steps of a roll-out.
    static let mostSteps = 32

    private enum Share: String, CaseIterable { case none, copy }

    private func obstacle(_ stage: StageDefinition?, _ check: CheckRules, _ cache: CacheRules?) -> String? {
        for source in stage?.all.map(\.source) ?? [] {
            if let obstacle = obstacle(source) { return obstacle }
        }
        if reader.parameters.contains(where: \.isSecret) {
            return "a parameter is a secret, so the content may be confidential"
        }
        if check.minisign != nil { return "members cannot verify 'check.minisign' of shared content in this version" }
        if check.sha256 != nil { return "members cannot verify 'check.sha256' of shared content in this version" }
        if cache?.files.isEmpty == false { return "'cache.files' cannot be shared in this version" }
        return nil
    }

    private func obstacle(_ source: SourceDefinition) -> String? {
        switch source {
        case .http(let source):
            if source.hasSecrets { return "the request has a secret, so the content may be confidential" }
            if source.mirrors != nil { return "the source has mirrors, which cannot be shared in this version" }
            if source.unixSocket != nil { return "the source is a Unix socket of this machine" }
            return nil
        case .command: return "the source is a command of this machine"
        case .file: return "the source is a file of this machine"
        case .copy: return "the source is another pipeline of this machine"
        case .joined(let sources):
            return sources.lazy.flatMap { $0.stage.all }.compactMap { obstacle($0.source) }.first
        }
    }
}

extension ValueKind where Value == String {
    /// A name that is also a token of a NATS subject.
    fileprivate static let fleetName = ValueKind(name: "a name such as prod") { scalar throws(ValueError) in
        let name = scalar.text
        guard (1...64).contains(name.utf8.count),
            name.utf8.allSatisfy({ HTTPText.isLetterOrDigit($0) || "-_".utf8.contains($0) })
        else {
            throw ValueError("has to be a name of letters, digits, '-' and '_', at most 64, not \(name.quoted)")
        }
        return name
    }

    fileprivate static let server = ValueKind(name: "a list of URLs such as https://nats1.example:4222") {
        scalar throws(ValueError) in
        let host = try URLText.host(of: scalar.text)
        let isPlain = scalar.text.lowercased().hasPrefix("http:")
        guard !isPlain || host == "localhost" || host.hasPrefix("127.") || host == "::1" else {
            throw ValueError("has a URL without TLS", remedy: "write https; http is allowed for this machine only")
        }
        return scalar.text
    }

    /// The public NKEY of a user: `U` and 55 characters of Base32.
    fileprivate static let publicKey = ValueKind(name: "a list of public keys such as UAT6…") {
        scalar throws(ValueError) in
        let key = scalar.text
        let isBase32 = key.utf8.allSatisfy { (0x41...0x5A).contains($0) || (0x32...0x37).contains($0) }
        if key.hasPrefix("SU"), isBase32 {
            throw ValueError(
                "has a secret seed in place of a public key",
                remedy: "replace that key on all machines now; write the public key, which begins with U")
        }
        guard key.utf8.count == 56, key.hasPrefix("U"), isBase32 else {
            throw ValueError(
                "has to be public keys of NATS users, not \(key.prefix(80).description.quoted)",
                remedy: "a key begins with U and has 56 characters; 'freshetctl fleet key' shows it")
        }
        return key
    }
}

extension ValueKind where Value == UInt32 {
    fileprivate static let failures = ValueKind(name: "a number of machines") { scalar throws(ValueError) in
        guard let number = UInt32(scalar.text), (1...1_000_000).contains(number) else {
            throw ValueError("has to be a number of machines from 1 on, not \(scalar.text.quoted)")
        }
        return number
    }
}

extension ValueKind where Value == Double {
    /// A part of the fleet, in percent.
    fileprivate static let step = ValueKind(name: "a list of percentages such as [1%, 10%]") {
        scalar throws(ValueError) in
        let text = scalar.text
        guard text.hasSuffix("%"), text.dropLast().utf8.allSatisfy({ (48...57).contains($0) || $0 == 46 }),
            let percentage = Double(text.dropLast()), percentage >= 0.0001, percentage <= 100
        else {
            throw ValueError("has to be percentages from 0.0001% to 100%, not \(text.quoted)")
        }
        return percentage
    }

    /// A number of requests per second.
    fileprivate static let rate = ValueKind(name: "a rate such as 5/s") { scalar throws(ValueError) in
        let parts = scalar.text.split(separator: "/", omittingEmptySubsequences: false)
        let periods: [Substring: Double] = ["s": 1, "min": 60, "h": 3_600]
        guard parts.count == 2, let number = Int(parts[0]), (1...1_000_000).contains(number),
            parts[0].utf8.allSatisfy({ (48...57).contains($0) }), let period = periods[parts[1]]
        else {
            throw ValueError(
                "has to be a rate such as 5/s, not \(scalar.text.quoted)",
                remedy: "write a number of requests, a slash, and s, min or h")
        }
        return Double(number) / period
    }
}

extension ValueKind where Value == Void {
    fileprivate static let none = ValueKind(name: "none, or {after: …, rate: …}") { scalar throws(ValueError) in
        guard scalar.text == "none" else {
            throw ValueError("has to be none, or have keys, not \(scalar.text.quoted)")
        }
    }
}
