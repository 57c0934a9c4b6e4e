import FreshetPipelines

extension DefinitionReader {
    /// How many headers a request may have.
    static let maximumHeaders = 64
    /// How many generations can be kept; each is a file of the size of the copy.
    static let maximumGenerations = 1000
    /// The smallest `max-age`: a shorter one would expire before a reader opens the copy.
    static let minimumMaxAge: Duration = .seconds(1)

    /// Reads a pipeline's file. The result may be used only if ``errors`` contains no error.
    ///
    /// - Returns: The definition, nil if a required part is missing; and the names of the cache files with their
    ///   location, nil if they are missing or invalid.
    mutating func pipeline(
        named name: String, from root: Node
    ) -> (definition: PipelineDefinition?, cacheFile: CacheFileLocation?) {
        guard let file = self.root(.pipeline, root) else { return (nil, nil) }
        let description = value("description", in: file, .line)
        readParameters(in: file)
        let stage = stage(in: file)
        let transform = transform(in: file, of: stage)
        var refresh = refresh(in: file)
        refresh.after = predecessorNames
        let (cache, cacheLocation) = cache(in: file)
        checkMaxAge(of: cache, refresh, in: file)
        checkHonour(of: refresh, in: file, stage)
        var check = check(in: file, sources: stage?.all.map(\.source), copies: cache?.format)
        readProofs(of: &check, of: stage, in: file)
        let hooks = hooks(in: file)
        let cacheFile = cache.flatMap { cache in cacheLocation.map { CacheFileLocation(of: cache, at: $0) } }
        if let cache { checkForm(of: check, of: cache, in: file) }
        guard var stage, let cache else { return (nil, cacheFile) }
        // A single answer has a single transform: at the top of the file or below `source`.
        if stage.each == nil, file["sources"] == nil { stage.transform = nil }
        checkFormats(of: stage, transform, in: file)
        var definition = PipelineDefinition(
            name: name, description: description, stage: stage, transform: transform, refresh: refresh, check: check,
            cache: cache, parameters: parameters)
        definition.hooks = hooks
        return (definition, cacheFile)
    }

    /// The transform of the whole pipeline. If there is one source, its own `transform` is that.
    private mutating func transform(in file: Section, of stage: StageDefinition?) -> String? {
        let transform = value("transform", in: file, .program)
        guard let stage, stage.each == nil, file["sources"] == nil else { return transform }
        if let first = file["transform"], stage.transform != nil,
            case .mapping(let entries)? = file["source"]?.value.content,
            let second = entries.first(where: { $0.key == "transform" })
        {
            addError(
                second.location, "source.transform", "there is a 'transform' here and one at the top of the file",
                remedy: "join the programs with '|' and keep one", related: first.location)
        }
        return transform ?? stage.transform
    }

    // MARK: source

    private mutating func stage(in file: Section) -> StageDefinition? {
        if file["sources"] != nil { return joinedStage(in: file) }
        if let entry = file["combine"] {
            addError(
                entry.location, "combine", "'combine' needs 'sources', but this pipeline has one 'source'",
                remedy: "rename it to 'transform'")
        }
        guard file["source"] != nil else {
            missing(
                file.location, "source", "'source' is missing",
                remedy: "add the source of the data: source: {url: https://…}")
            return nil
        }
        guard let section = section(.source, "source", in: file) else { return nil }
        return stage(section, among: [])
    }

    /// - Parameter names: The names of the items of the fan-outs around it.
    mutating func stage(_ section: Section, among names: [String]) -> StageDefinition? {
        let source = source(section, among: names)
        let pages = pages(of: source, in: section)
        let format = format(of: source, in: section)
        let transform = value("transform", in: section, .program)
        let each = each(in: section, among: names)
        return source.map { StageDefinition($0, pages: pages, format: format, transform: transform, each: each) }
    }

    private mutating func source(_ section: Section, among names: [String]) -> SourceDefinition? {
        let kinds = ["url", "file", "exec", "pipeline"].compactMap { section[$0] }
        guard let kind = kinds.first else {
            missing(
                section.location, section.keyPath,
                "'\(section.name.rawValue)' has none of 'url', 'file', 'exec' and 'pipeline'",
                remedy: "add the source of the data: url: https://…")
            return nil
        }
        for other in kinds.dropFirst() {
            addError(
                other.location, section.path(other.key), "'\(other.key)' and '\(kind.key)' exclude each other",
                remedy: "keep one; a drop-in removes the other with '\(kind.key): null'", related: kind.location)
        }
        let headers = headers(in: section)
        if kind.key != "url" {
            for (key, verb, them) in Self.requestKeys {
                guard let entry = section[key] else { continue }
                addError(
                    entry.location, section.path(key),
                    "'\(key)' \(verb) a 'url', but the source is '\(kind.key)'", remedy: "leave \(them) out")
            }
        }
        switch kind.key {
        case "url":
            if isURLFromData(in: section, among: names) {
                if let entry = section["unix-socket"] {
                    addError(
                        entry.location, section.path(entry.key),
                        "'unix-socket' cannot be used with a URL that an item gives",
                        remedy: "leave it out, or write the URL in the file", related: kind.location)
                }
                return value("url", in: section, .line).map { url in
                    let source = request(for: (url, ""), headers, in: section)
                    checkPlaceholders(of: source, in: section, among: names)
                    return .http(source)
                }
            }
            return value("url", in: section, .url).map { url in
                checkPlaceholders(of: url.url, kind, in: section, among: names)
                let source = request(for: url, headers, in: section)
                checkPlaceholders(of: source, in: section, among: names)
                if source.headers.contains(where: { $0.credential != nil }), !source.mayCarryCredentials {
                    addError(
                        kind.value.location, section.path("url"),
                        "a credential would be sent to '\(url.host)' unencrypted",
                        remedy:
                            "begin the URL with https://; http:// is allowed only for this host (localhost, 127.0.0.1)",
                        related: section["credential"]?.location)
                }
                return .http(source)
            }
        case "file":
            return value("file", in: section, .absolutePath).map { .file($0) }
        case "pipeline":
            return upstream(in: section)
        default:
            if case .sequence(let nodes)? = section["exec"]?.value.content {
                checkPlaceholders(ofArguments: Array(nodes.dropFirst()), section.path("exec"), among: names)
            }
            return command(in: section).map { .command($0) }
        }
    }

    mutating func command(in section: Section) -> [String]? {
        guard let entry = section["exec"] else { return nil }
        guard case .sequence(let nodes) = entry.value.content else {
            addError(
                entry.value.location, section.path("exec"), "'exec' has to be a list, not \(entry.value.kind)",
                remedy: "write [/usr/bin/program, argument]; Freshet uses no shell to split a line into words")
            return nil
        }
        guard let program = nodes.first else {
            addError(
                entry.value.location, section.path("exec"), "'exec' is an empty list",
                remedy: "add the path of a program")
            return nil
        }
        let path = value(of: program, key: "exec", keyPath: section.path("exec"), .absolutePath)
        let arguments = nodes.dropFirst().map {
            value(of: $0, key: "exec", keyPath: section.path("exec"), .argument)
        }
        guard let path else { return nil }
        return [path] + arguments.compactMap { $0 }
    }

    /// The header fields, including that of `credential`.
    private mutating func headers(in section: Section) -> [HTTPHeader] {
        var headers = plainHeaders(in: section)
        if let own = credentialHeader(in: section), let entry = section["credential"] {
            if headers.contains(where: { $0.name.lowercased() == own.name.lowercased() }) {
                addError(
                    entry.location, section.path("credential"),
                    "'credential' sets the header '\(own.name)', which is also in 'headers'",
                    remedy: "keep one of them", related: section["headers"]?.location)
            }
            headers.append(own)
        }
        return headers
    }

    private mutating func plainHeaders(in section: Section) -> [HTTPHeader] {
        guard let entry = section["headers"] else { return [] }
        guard case .mapping(let entries) = entry.value.content else {
            if case .invalid = entry.value.content { return [] }
            addError(
                entry.value.location, section.path("headers"),
                "'headers' has to contain names with values, not \(entry.value.kind)",
                remedy: "write headers: {Accept: application/json}")
            return []
        }
        guard entries.count <= Self.maximumHeaders else {
            addError(entry.location, section.path("headers"), "there are more than \(Self.maximumHeaders) headers")
            return []
        }
        var places: [String: Location] = [:]
        var headers: [HTTPHeader] = []
        for entry in entries {
            if case .removed = entry.value.content { continue }
            let keyPath = "\(section.path("headers")).\(entry.key)"
            do throws(ValueError) {
                try HTTPText.checkHeaderName(entry.key)
            } catch {
                self.addError(entry.location, keyPath, "\(entry.key.quoted) \(error.message)", remedy: error.remedy)
                continue
            }
            if let first = places.updateValue(entry.location, forKey: entry.key.lowercased()) {
                addError(
                    entry.location, keyPath, "the header '\(entry.key)' appears twice: header names ignore case",
                    remedy: "keep one of them", related: first)
            }
            if case .mapping(let entries) = entry.value.content {
                if let name = credential(of: entry, among: entries, keyPath) {
                    headers.append(HTTPHeader(entry.key, credential: name))
                }
            } else if let value = value(of: entry.value, key: entry.key, keyPath: keyPath, .headerValue) {
                headers.append(HTTPHeader(entry.key, value))
            }
        }
        return headers
    }

    /// The name in a header's value `{credential: NAME}`.
    private mutating func credential(of header: Node.Entry, among entries: [Node.Entry], _ keyPath: String) -> String? {
        guard entries.count == 1, let entry = entries.first, entry.key == "credential" else {
            addError(
                header.value.location, keyPath, "\(header.key.quoted) has to be one line of text or {credential: NAME}",
                remedy: "add the name of a credential of the service (LoadCredential=)")
            return nil
        }
        return value(of: entry.value, key: "credential", keyPath: "\(keyPath).credential", .credentialName)
    }

    // MARK: cache

    /// Warns if each copy expires before its next check: Freshet would report the expiry again and again.
    private mutating func checkMaxAge(of cache: CacheRules?, _ refresh: RefreshPolicy, in file: Section) {
        guard let maxAge = cache?.maxAge, let every = refresh.every, maxAge <= every + refresh.randomDelay,
            let entry = entry("max-age", below: "cache", in: file)
        else { return }
        let delay = refresh.randomDelay > .zero ? " and 'random-delay'" : ""
        warning(
            entry.value.location, "cache.max-age",
            "'max-age' is not longer than 'every'\(delay), so each copy expires before the next check",
            remedy: "make it longer than \(TimeSpan.text(every + refresh.randomDelay))")
    }

    /// Whether expired copies are withdrawn. This needs `max-age`.
    ///
    /// - Parameter maxAge: The value of `max-age`; nil if the key is absent or invalid.
    private mutating func withdraws(in section: Section, maxAge: Duration??) -> Bool {
        guard value("withdraw", in: section, .boolean) == true, let entry = section["withdraw"] else { return false }
        let neverExpires = maxAge.map { $0 == nil } ?? (section["max-age"] == nil)
        guard neverExpires else { return true }
        addError(
            entry.value.location, section.path("withdraw"),
            "'withdraw' removes expired copies, but without 'max-age' no copy expires",
            remedy: "set the maximum age of a copy: max-age: 1d")
        return false
    }

    private mutating func cache(in file: Section) -> (CacheRules?, Location?) {
        let remedy = "add the name of the file that readers open: cache: {file: name.json}"
        guard file["cache"] != nil else {
            missing(file.location, "cache.file", "'cache' is missing", remedy: remedy)
            return (nil, nil)
        }
        guard let section = section(.cache, "cache", in: file) else { return (nil, nil) }
        let format: ContentFormat = value("format", in: section, .choice()) ?? .json
        let mode = value("mode", in: section, .fileMode)
        if let mode, mode & 0o022 != 0, let entry = section["mode"] {
            warning(
                entry.value.location, "cache.mode", "the mode lets other users write to the copy",
                remedy: "Freshet does not notice such changes; 0644 lets every user read the copy")
        }
        let group = value("group", in: section, .groupName)
        let keep = value("keep", in: section, .integer(1...Self.maximumGenerations))
        let age = value("max-age", in: section, .durationOrInfinity(Self.minimumMaxAge...TimeSpan.longest))
        let key = value("key", in: section, .itemKey)
        guard let entry = section["file"] else {
            missing(section.location, "cache.file", "'cache' has no 'file'", remedy: remedy)
            return (nil, nil)
        }
        guard let name = value("file", in: section, .fileName) else { return (nil, nil) }
        var rules = CacheRules(
            file: name, format: format, mode: mode, group: group, keep: keep ?? CacheRules.defaultKeep,
            maxAge: age ?? nil, key: key)
        rules.withdraws = withdraws(in: section, maxAge: age)
        rules.files = cachedFiles(in: section, format)
        return (rules, entry.value.location)
    }
}

extension ValueKind where Value == String {
    /// An argument of a command, which may be empty if it is quoted.
    fileprivate static let argument = ValueKind(name: "text", read: ValueKind.text.read)

    /// The name of a credential: valid for systemd and as a file name, and without characters that need quoting. A
    /// message does not quote it: a user may have written the secret itself here.
    static let credentialName = ValueKind(name: "the name of a credential such as api-token") {
        scalar throws(ValueError) in
        let name = scalar.text
        guard (1...64).contains(name.utf8.count), !name.hasPrefix("."),
            name.utf8.allSatisfy({ HTTPText.isLetterOrDigit($0) || "-_.".utf8.contains($0) })
        else {
            throw ValueError(
                "is not the name of a credential",
                remedy:
                    "use at most 64 letters, digits, '-', '_' and '.'; the secret itself belongs in a file that the "
                    + "unit loads with LoadCredential=")
        }
        return name
    }

    /// The path of an item's key, as in the option `--key` of freshetctl.
    fileprivate static let itemKey = ValueKind(name: "a path such as .id or .meta.name") { scalar throws(ValueError) in
        let path = try ValueKind.text.read(scalar)
        let names = path.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
        guard path.hasPrefix("."),
            path == "."
                || names.allSatisfy({ name in
                    !name.isEmpty && name.utf8.allSatisfy { HTTPText.isLetterOrDigit($0) || "-_".utf8.contains($0) }
                })
        else {
            throw ValueError(
                "has to be the path of an item's key, not \(path.quoted)",
                remedy: "write a path of names such as .id or .meta.name, or . if the items themselves are the keys")
        }
        return path
    }

    /// A group by its name, as useradd(8) creates it, or by its number.
    fileprivate static let groupName = ValueKind(name: "the name of a group") { scalar throws(ValueError) in
        let name = scalar.text
        guard (1...256).contains(name.utf8.count), !name.hasPrefix("-"), !name.contains(":"), !name.contains("/"),
            !name.unicodeScalars.contains(where: { $0.actsOnTerminal || $0.properties.isWhitespace })
        else { throw ValueError("is not the name of a group", remedy: "see the first column of /etc/group") }
        return name
    }

    fileprivate static let headerValue = ValueKind(name: "one line of text") { scalar throws(ValueError) in
        try HTTPText.checkHeaderValue(scalar.text)
        return scalar.text
    }
}

extension ValueKind where Value == (url: String, host: String) {
    static let url = ValueKind(name: "a URL such as https://example.com/data.json") {
        scalar throws(ValueError) in
        do throws(URLTemplate.ValidationError) {
            _ = try URLTemplate(scalar.text)
        } catch {
            let remedy: String? =
                switch error {
                case .beforePath: "use placeholders in the path and the query; write one pipeline for each host"
                case .unbalanced, .notAName: "a placeholder is a name in braces; write a literal brace as %7B or %7D"
                case .missing, .notASegment, .tooLong: nil
                }
            throw ValueError(error.sentence, remedy: remedy)
        }
        return (scalar.text, try URLText.host(of: scalar.text))
    }
}
