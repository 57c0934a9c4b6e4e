import FreshetPipelines

extension DefinitionReader {
    /// How many headers a request may have.
    static let maximumHeaders = 64
    /// How many generations can be kept; each is a file of the cache's size.
    static let maximumGenerations = 1000
    /// The least `max-age`: a shorter one is over before anybody has read the copy.
    static let leastMaxAge: Duration = .seconds(1)

    /// Reads a pipeline's file. What it returns is good only if there are no errors among the faults.
    ///
    /// - Returns: The definition, nil if a part is missing without which there is none; and where its cache file's name
    ///   stands, if it could be read.
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
        // Of one answer there is one transform, wherever it stands.
        if stage.each == nil, file["sources"] == nil { stage.transform = nil }
        checkFormats(of: stage, transform, in: file)
        var definition = PipelineDefinition(
            name: name, description: description, stage: stage, transform: transform, refresh: refresh, check: check,
            cache: cache, parameters: parameters)
        definition.hooks = hooks
        return (definition, cacheFile)
    }

    /// The program for the whole. One that stands beside the only source is the same.
    private mutating func transform(in file: Section, of stage: StageDefinition?) -> String? {
        let transform = value("transform", in: file, .program)
        guard let stage, stage.each == nil, file["sources"] == nil else { return transform }
        if let first = file["transform"], stage.transform != nil,
            case .mapping(let entries)? = file["source"]?.value.content,
            let second = entries.first(where: { $0.key == "transform" })
        {
            error(
                second.location, "source.transform", "two transforms, here and at the top of the file",
                remedy: "join the programs with '|' and keep one", related: first.location)
        }
        return transform ?? stage.transform
    }

    // MARK: source

    private mutating func stage(in file: Section) -> StageDefinition? {
        if file["sources"] != nil { return joinedStage(in: file) }
        if let entry = file["combine"] {
            error(
                entry.location, "combine", "'combine' belongs to 'sources', and there is one source",
                remedy: "call it 'transform'")
        }
        guard file["source"] != nil else {
            missing(
                file.location, "source", "'source' is missing",
                remedy: "say where the data comes from: source: {url: https://…}")
            return nil
        }
        guard let section = section(.source, "source", in: file) else { return nil }
        return stage(section, among: [])
    }

    /// - Parameter names: of the items around it.
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
                remedy: "say where the data comes from: url: https://…")
            return nil
        }
        for other in kinds.dropFirst() {
            error(
                other.location, section.path(other.key), "'\(other.key)' and '\(kind.key)' exclude each other",
                remedy: "keep one; a drop-in takes the other away with '\(kind.key): null'", related: kind.location)
        }
        let headers = headers(in: section)
        if kind.key != "url" {
            for (key, verb, them) in Self.requestKeys {
                guard let entry = section[key] else { continue }
                error(
                    entry.location, section.path(key),
                    "'\(key)' \(verb) to a 'url', and the source is '\(kind.key)'", remedy: "leave \(them) out")
            }
        }
        switch kind.key {
        case "url":
            if isURLFromData(in: section, among: names) {
                if let entry = section["unix-socket"] {
                    error(
                        entry.location, section.path(entry.key),
                        "'unix-socket' does not go with a URL that an item names",
                        remedy: "leave it out, or write the URL down", related: kind.location)
                }
                return value("url", in: section, .line).map { url in
                    let source = request(for: (url, ""), headers, in: section)
                    checkPlaces(of: source, in: section, among: names)
                    return .http(source)
                }
            }
            return value("url", in: section, .url).map { url in
                checkPlaces(of: url.url, kind, in: section, among: names)
                let source = request(for: url, headers, in: section)
                checkPlaces(of: source, in: section, among: names)
                if source.headers.contains(where: { $0.credential != nil }), !source.mayCarryCredentials {
                    error(
                        kind.value.location, section.path("url"),
                        "a credential would be sent to '\(url.host)' unencrypted",
                        remedy:
                            "begin the URL with https://; http:// is for this machine itself (localhost, 127.0.0.1)",
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
                checkPlaces(ofArguments: Array(nodes.dropFirst()), section.path("exec"), among: names)
            }
            return command(in: section).map { .command($0) }
        }
    }

    mutating func command(in section: Section) -> [String]? {
        guard let entry = section["exec"] else { return nil }
        guard case .sequence(let nodes) = entry.value.content else {
            error(
                entry.value.location, section.path("exec"), "'exec' has to be a list, not \(entry.value.kind)",
                remedy: "write [/usr/bin/program, argument]; there is no shell that would divide a line into words")
            return nil
        }
        guard let program = nodes.first else {
            error(
                entry.value.location, section.path("exec"), "'exec' is an empty list",
                remedy: "name a program by its path")
            return nil
        }
        let path = value(of: program, key: "exec", keyPath: section.path("exec"), .absolutePath)
        let arguments = nodes.dropFirst().map {
            value(of: $0, key: "exec", keyPath: section.path("exec"), .argument)
        }
        guard let path else { return nil }
        return [path] + arguments.compactMap { $0 }
    }

    /// The header fields; `credential` is one of them.
    private mutating func headers(in section: Section) -> [HTTPHeader] {
        var headers = plainHeaders(in: section)
        if let own = ownCredential(in: section), let entry = section["credential"] {
            if headers.contains(where: { $0.name.lowercased() == own.name.lowercased() }) {
                error(
                    entry.location, section.path("credential"),
                    "'credential' makes the header '\(own.name)', which stands in "
                        + "'headers' too", remedy: "keep one of them", related: section["headers"]?.location)
            }
            headers.append(own)
        }
        return headers
    }

    private mutating func plainHeaders(in section: Section) -> [HTTPHeader] {
        guard let entry = section["headers"] else { return [] }
        guard case .mapping(let entries) = entry.value.content else {
            if case .refused = entry.value.content { return [] }
            error(
                entry.value.location, section.path("headers"),
                "'headers' has to hold names with values, not \(entry.value.kind)",
                remedy: "write headers: {Accept: application/json}")
            return []
        }
        guard entries.count <= Self.maximumHeaders else {
            error(entry.location, section.path("headers"), "there are more than \(Self.maximumHeaders) headers")
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
                self.error(entry.location, keyPath, "\(entry.key.quoted) \(error.message)", remedy: error.remedy)
                continue
            }
            if let first = places.updateValue(entry.location, forKey: entry.key.lowercased()) {
                error(
                    entry.location, keyPath, "the header '\(entry.key)' stands twice, since case does not matter",
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
            error(
                header.value.location, keyPath, "\(header.key.quoted) has to be one line of text or {credential: NAME}",
                remedy: "name a credential that the service is started with")
            return nil
        }
        return value(of: entry.value, key: "credential", keyPath: "\(keyPath).credential", .credentialName)
    }

    // MARK: cache

    /// A copy that expires before it is checked again would be told to have expired again and again.
    private mutating func checkMaxAge(of cache: CacheRules?, _ refresh: RefreshPolicy, in file: Section) {
        guard let maxAge = cache?.maxAge, let every = refresh.every, maxAge <= every + refresh.randomDelay,
            let entry = entry("max-age", below: "cache", in: file)
        else { return }
        let delay = refresh.randomDelay > .zero ? " and 'random-delay'" : ""
        warning(
            entry.value.location, "cache.max-age",
            "'max-age' is not longer than 'every'\(delay), so that each copy expires before it is checked again",
            remedy: "make it longer than \(TimeSpan.text(every + refresh.randomDelay))")
    }

    /// What never expires is never withdrawn.
    ///
    /// - Parameter maxAge: nil: it is not there, or has a fault of its own.
    private mutating func withdraws(in section: Section, maxAge: Duration??) -> Bool {
        guard value("withdraw", in: section, .boolean) == true, let entry = section["withdraw"] else { return false }
        let isForever = maxAge.map { $0 == nil } ?? (section["max-age"] == nil)
        guard isForever else { return true }
        error(
            entry.value.location, section.path("withdraw"),
            "'withdraw' takes a copy away that has expired, and without 'max-age' none ever does",
            remedy: "say how old a copy may be: max-age: 1d")
        return false
    }

    private mutating func cache(in file: Section) -> (CacheRules?, Location?) {
        let remedy = "name the file that readers open: cache: {file: name.json}"
        guard file["cache"] != nil else {
            missing(file.location, "cache.file", "'cache' is missing", remedy: remedy)
            return (nil, nil)
        }
        guard let section = section(.cache, "cache", in: file) else { return (nil, nil) }
        let format: ContentFormat = value("format", in: section, .choice()) ?? .json
        let mode = value("mode", in: section, .fileMode)
        if let mode, mode & 0o022 != 0, let entry = section["mode"] {
            warning(
                entry.value.location, "cache.mode", "others than the service may write to the copy",
                remedy: "what they write is not noticed; 0644 lets all read it")
        }
        let group = value("group", in: section, .groupName)
        let keep = value("keep", in: section, .integer(1...Self.maximumGenerations))
        let age = value("max-age", in: section, .durationOrInfinity(Self.leastMaxAge...TimeSpan.longest))
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

    /// What systemd takes for the name of a credential and a file system for a file's, as far as it needs no quoting. Not
    /// quoted in a message: it may be the secret itself, put at the wrong place.
    static let credentialName = ValueKind(name: "the name of a credential such as api-token") {
        scalar throws(ValueError) in
        let name = scalar.text
        guard (1...64).contains(name.utf8.count), !name.hasPrefix("."),
            name.utf8.allSatisfy({ HTTPText.isLetterOrDigit($0) || "-_.".utf8.contains($0) })
        else {
            throw ValueError(
                "is not the name of a credential",
                remedy:
                    "name it in at most 64 letters, digits, '-', '_' and '.'; the secret itself stays in a file that "
                    + "the unit names by LoadCredential=")
        }
        return name
    }

    /// Where an item's key is: what freshetctl takes for `--key`.
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
                "has to say where an item's key is, not \(path.quoted)",
                remedy: "write a path of names such as .id or .meta.name, or . if the items themselves are the keys")
        }
        return path
    }

    /// A group by name, as useradd(8) makes them, or by number.
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
                case .beforePath: "values stand in the path and the query; what differs before is another pipeline"
                case .unbalanced, .notAName: "a place for a value is a name in braces; a literal brace is %7B or %7D"
                case .missing, .notASegment, .tooLong: nil
                }
            throw ValueError(error.sentence, remedy: remedy)
        }
        return (scalar.text, try URLText.host(of: scalar.text))
    }
}
