import FreshetPipelines

/// The proofs of a content's authenticity (checksums and signatures), and the program that checks it.
struct ProofReader {
    let reader: DefinitionReader

    /// - Parameter stage: The source; nil if it is invalid.
    func readProofs(of rules: inout CheckRules, of stage: StageDefinition?, in file: Section) {
        guard case .mapping(let entries)? = file["check"]?.value.content else { return }
        // `check(in:sources:copies:)` has reported unknown keys already.
        let section = Section(
            name: .check, location: file["check"]?.value.location ?? file.location, entries: entries, keyPath: "check")
        rules.sha256 = checksum(in: section)
        rules.minisign = signature(in: section, of: stage)
        rules.exec = inspection(in: section)
        guard let stage, let entry = ["sha256", "minisign"].lazy.compactMap({ section[$0] }).first,
            let obstacle = obstacle(in: stage)
        else { return }
        reader.addError(
            entry.location, section.path(entry.key),
            "'\(entry.key)' needs a single request to a 'url', but \(obstacle)",
            remedy: "leave it out; your own program can check any copy: exec: [/usr/lib/program]")
    }

    /// Why the source is not a single answer that a checksum or signature could cover; nil if it is.
    private func obstacle(in stage: StageDefinition) -> String? {
        if stage.each != nil { return "'each' makes several requests" }
        if stage.pages != nil { return "'pages' makes several requests" }
        return switch stage.source {
        case .http: nil
        case .joined: "there are several sources"
        case .command: "the source is 'exec'"
        case .file: "the source is 'file'"
        case .copy: "the source is 'pipeline'"
        }
    }

    // MARK: Checksums

    private func checksum(in section: Section) -> ChecksumRule? {
        guard let entry = section["sha256"] else { return nil }
        if case .scalar(let scalar) = entry.value.content, !scalar.text.contains(":") {
            return reader.value("sha256", in: section, .sha256).map(ChecksumRule.digest)
        }
        guard case .mapping = entry.value.content else {
            return proofSource("sha256", in: section).map { ChecksumRule.list($0) }
        }
        guard let own = reader.section(.sha256, "sha256", in: section) else { return nil }
        if own["url"] == nil {
            reader.missing(
                own.location, own.path("url"), "'sha256' has no 'url'",
                remedy: "add the URL of the list of checksums: url: https://…/SHA256SUMS")
        }
        let name = reader.value("name", in: own, .listedName)
        return proofSource("url", in: own).map { ChecksumRule.list($0, name: name) }
    }

    // MARK: Signatures

    private func signature(in section: Section, of stage: StageDefinition?) -> SignatureRule? {
        guard let entry = section["minisign"] else { return nil }
        guard case .mapping = entry.value.content else {
            checkFileName(of: stage, entry.location)
            return reader.value("minisign", in: section, .minisignKey).map { SignatureRule(.key($0)) }
        }
        guard let own = reader.section(.minisign, "minisign", in: section) else { return nil }
        let key = reader.value("key", in: own, .minisignKey)
        let path = reader.value("key-file", in: own, .absolutePath)
        if let second = own["key-file"], let first = own["key"] {
            reader.addError(
                second.location, own.path("key-file"), "'key' and 'key-file' exclude each other", remedy: "keep one",
                related: first.location)
        }
        if own["key"] == nil, own["key-file"] == nil {
            reader.missing(
                own.location, own.path("key"), "'minisign' has no 'key'",
                remedy: "add the publisher's public key, the line that begins with RW, or the path of its file as "
                    + "'key-file'")
        }
        if own["url"] == nil { checkFileName(of: stage, entry.location) }
        let signature = proofSource("url", in: own)
        return (key.map { .key($0) } ?? path.map { .file($0) }).map { SignatureRule($0, signature: signature) }
    }

    /// Checks that the source's URL ends in a file name, from which the URL of the signature is derived.
    private func checkFileName(of stage: StageDefinition?, _ location: Location) {
        guard let stage, case .http(let source) = stage.source,
            source.alternatives.contains(where: { $0.fileName == nil })
        else { return }
        reader.addError(
            location, "check.minisign",
            "the URL of the source does not end in a file name, to which '\(SignatureRule.suffix)' would be added",
            remedy: "add the URL of the signature: minisign: {key: RW…, url: https://…}")
    }

    private func proofSource(_ key: String, in section: Section) -> HTTPSource? {
        guard let entry = section[key], let url = reader.value(key, in: section, .url) else { return nil }
        PlaceholderChecker(reader: reader).checkPlaceholders(of: url.url, entry, in: section, among: [])
        return HTTPSource(url: url.url, host: url.host)
    }

    // MARK: Programs

    private func inspection(in section: Section) -> InspectionRule? {
        let timeout = reader.value("timeout", in: section, .duration(InspectionRule.timeouts))
        if section["exec"] == nil, let entry = section["timeout"] {
            reader.addError(
                entry.location, section.path("timeout"), "'timeout' needs 'exec'",
                remedy: "leave it out; 'refresh.deadline' limits the time of a run")
        }
        return CommandReader(reader: reader).command(in: section).map {
            InspectionRule($0, timeout: timeout ?? InspectionRule.defaultTimeout)
        }
    }
}

extension ValueKind where Value == String {
    /// A SHA-256 checksum, in lower case.
    fileprivate static let sha256 = ValueKind(name: "a SHA-256 checksum, or the URL of a list of checksums") {
        scalar throws(ValueError) in
        let digits = scalar.text.lowercased()
        guard digits.utf8.count == 64, digits.utf8.allSatisfy({ "0123456789abcdef".utf8.contains($0) }) else {
            throw ValueError(
                "has to be a SHA-256 checksum of 64 hexadecimal digits, or the URL of a list of checksums",
                remedy: "write the digits that 'sha256sum FILE' prints, or begin the URL with https://")
        }
        return digits
    }

    /// A file in a list of checksums: a name, or a path.
    fileprivate static let listedName = ValueKind(name: "the name of a file in the list") {
        scalar throws(ValueError) in
        let name = try ValueKind.line.read(scalar)
        guard !name.isEmpty else { throw ValueError("is empty", remedy: "write the file's name as in the list") }
        return name.hasPrefix("./") ? String(name.dropFirst(2)) : name
    }
}

extension ValueKind where Value == MinisignKey {
    fileprivate static let minisignKey = ValueKind(name: "a public key of minisign, which begins with RW") {
        scalar throws(ValueError) in
        do throws(MinisignKey.ValidationError) {
            return try MinisignKey(scalar.text)
        } catch {
            // Not quoted: it may be the secret key.
            throw ValueError(error.message, remedy: "write the second line of the publisher's .pub file")
        }
    }
}
