import FreshetPipelines

/// Reads the file of a pipeline.
struct PipelineReader {
    let reader: DefinitionReader

    /// How many generations can be kept; each is a file of the size of the copy.
    static let maximumGenerations = 1000
    /// The smallest `max-age`: a shorter one would expire before a reader opens the copy.
    static let minimumMaxAge: Duration = .seconds(1)

    /// Reads a pipeline's file. The result may be used only if ``DefinitionReader/errors`` contains no error.
    ///
    /// - Returns: The definition, nil if a required part is missing; and the names of the cache files with their
    ///   location, nil if they are missing or invalid.
    func pipeline(
        named name: String, from root: Node
    ) -> (definition: PipelineDefinition?, cacheFile: CacheFileLocation?) {
        guard let file = reader.root(.pipeline, root) else { return (nil, nil) }
        let description = reader.value("description", in: file, .line)
        ParameterReader(reader: reader).readParameters(in: file)
        let stage = StageReader(reader: reader).stage(in: file)
        let (transform, template) = transform(in: file, of: stage)
        var refresh = refresh(in: file)
        if !reader.predecessors.isEmpty { refresh.after = reader.predecessorNames }
        let (cache, cacheLocation) = cache(in: file, template)
        checkMaxAge(of: cache, refresh, in: file)
        RefreshReader(reader: reader).checkHonour(of: refresh, in: file, stage)
        var check = CheckReader(reader: reader).check(
            in: file, sources: stage?.all.map(\.source), copies: cache?.format)
        ProofReader(reader: reader).readProofs(of: &check, of: stage, in: file)
        let fleet = FleetReader(reader: reader).sharing(in: file, stage, check, cache)
        let hooks = HookReader(reader: reader).hooks(in: file)
        let cacheFile = cache.flatMap { cache in cacheLocation.map { CacheFileLocation(of: cache, at: $0) } }
        if let cache { CachedFilesReader(reader: reader).checkForm(of: check, of: cache, in: file) }
        guard var stage, let cache else { return (nil, cacheFile) }
        // A single answer has a single transform: at the top of the file or below `source`.
        if stage.each == nil, file["sources"] == nil { stage.transform = nil }
        FormatReader(reader: reader).checkFormats(of: stage, transform, template, in: file)
        let definition = PipelineDefinition(
            name: name, description: description, stage: stage, transform: transform, template: template,
            refresh: refresh, check: check, cache: cache, parameters: reader.parameters, hooks: hooks, fleet: fleet)
        return (definition, cacheFile)
    }

    /// The jq program and the template of the whole pipeline. If there is one source, its own `transform` is the
    /// program.
    private func transform(in file: Section, of stage: StageDefinition?) -> (String?, TemplateDefinition?) {
        let (transform, template) = TransformReader(reader: reader).transform(in: file)
        guard let stage, stage.each == nil, file["sources"] == nil else { return (transform, template) }
        if let first = file["transform"], stage.transform != nil,
            case .mapping(let entries)? = file["source"]?.value.content,
            let second = entries.first(where: { $0.key == "transform" })
        {
            reader.addError(
                second.location, "source.transform", "there is a 'transform' here and one at the top of the file",
                remedy: template == nil
                    ? "join the programs with '|' and keep one" : "move this program to transform.jq",
                related: first.location)
        }
        return (transform ?? stage.transform, template)
    }

    /// The refresh policy, which many pipelines have in common.
    private func refresh(in file: Section) -> RefreshPolicy {
        guard let memory = reader.memory, let index = file.index(of: "refresh") else {
            return RefreshReader(reader: reader).refresh(in: file)
        }
        let node = file.entries[index].value
        if let known = memory.policy(of: node) { return known }
        let before = (reader.errors.count, reader.predecessors.count)
        let policy = RefreshReader(reader: reader).refresh(in: file)
        if before == (reader.errors.count, reader.predecessors.count) { memory.keep(policy, of: node) }
        return policy
    }

    /// Warns if each copy expires before its next check: Freshet would report the expiry again and again.
    private func checkMaxAge(of cache: CacheRules?, _ refresh: RefreshPolicy, in file: Section) {
        guard let maxAge = cache?.maxAge, let every = refresh.every, maxAge <= every + refresh.randomDelay,
            let entry = reader.entry("max-age", below: "cache", in: file)
        else { return }
        let delay = refresh.randomDelay > .zero ? " and 'random-delay'" : ""
        reader.warning(
            entry.value.location, "cache.max-age",
            "'max-age' is not longer than 'every'\(delay), so each copy expires before the next check",
            remedy: "make it longer than \(TimeSpan.text(every + refresh.randomDelay))")
    }

    /// Whether expired copies are withdrawn. This needs `max-age`.
    ///
    /// - Parameter maxAge: The value of `max-age`; nil if the key is absent or invalid.
    private func withdraws(in section: Section, maxAge: Duration??) -> Bool {
        guard reader.value("withdraw", in: section, .boolean) == true, let entry = section["withdraw"] else {
            return false
        }
        let neverExpires = maxAge.map { $0 == nil } ?? (section["max-age"] == nil)
        guard neverExpires else { return true }
        reader.addError(
            entry.value.location, section.path("withdraw"),
            "'withdraw' removes expired copies, but without 'max-age' no copy expires",
            remedy: "set the maximum age of a copy: max-age: 1d")
        return false
    }

    private func cache(in file: Section, _ template: TemplateDefinition?) -> (CacheRules?, Location?) {
        let remedy = "add the name of the file that readers open: cache: {file: name.json}"
        guard file["cache"] != nil else {
            reader.missing(file.location, "cache.file", "'cache' is missing", remedy: remedy)
            return (nil, nil)
        }
        guard let section = reader.section(.cache, "cache", in: file) else { return (nil, nil) }
        let format: ContentFormat =
            reader.value("format", in: section, .choice())
            ?? (template.map { $0.escape == .json ? .json : .text } ?? .json)
        let mode = reader.value("mode", in: section, .fileMode)
        if let mode, mode & 0o022 != 0, let entry = section["mode"] {
            reader.warning(
                entry.value.location, "cache.mode", "the mode lets other users write to the copy",
                remedy: "Freshet does not notice such changes; 0644 lets every user read the copy")
        }
        let group = reader.value("group", in: section, .groupName)
        let keep = reader.value("keep", in: section, .integer(1...Self.maximumGenerations))
        let age = reader.value("max-age", in: section, .durationOrInfinity(Self.minimumMaxAge...TimeSpan.longest))
        let key = reader.value("key", in: section, .itemKey)
        guard let entry = section["file"] else {
            reader.missing(section.location, "cache.file", "'cache' has no 'file'", remedy: remedy)
            return (nil, nil)
        }
        guard let name = reader.value("file", in: section, .fileName) else { return (nil, nil) }
        var rules = CacheRules(
            file: name, format: format, mode: mode, group: group, keep: keep ?? CacheRules.defaultKeep,
            maxAge: age ?? nil, key: key)
        rules.withdraws = withdraws(in: section, maxAge: age)
        rules.files = CachedFilesReader(reader: reader).cachedFiles(in: section, format)
        if template != nil, let entry = section["files"] {
            reader.addError(
                entry.location, section.path("files"), "'files' and 'transform.template' exclude each other",
                remedy: "make a pipeline for each file, with 'source: {pipeline: …}' and its own template",
                related: file["transform"]?.location)
        }
        return (rules, entry.value.location)
    }
}

extension ValueKind where Value == String {
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
}
