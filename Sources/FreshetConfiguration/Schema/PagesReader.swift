import FreshetPipelines

/// Reads `source.pages`.
struct PagesReader {
    let reader: DefinitionReader

    /// The largest `max` and `load`: each page is a request.
    static let maximumPages = 100_000
    /// The largest `size` of a page.
    static let maximumPageSize = 1_000_000

    /// The key `pages` of a source; nil if the key is absent or invalid.
    func pages(of source: SourceDefinition?, in parent: Section) -> PagesDefinition? {
        guard let entry = parent["pages"] else { return nil }
        switch source {
        case .http, nil: break
        case .command, .file, .copy, .joined:
            reader.addError(
                entry.location, parent.path("pages"),
                "'pages' needs a 'url': other sources have one answer", remedy: "leave it out")
            return nil
        }
        guard let section = reader.section(.pages, "pages", in: parent) else { return nil }
        let next = nextRule(in: section)
        let items = reader.value("items", in: section, .program)
        let key = reader.value("key", in: section, .program)
        let load = reader.value("load", in: section, .pageLoad)
        let max = reader.value("max", in: section, .integer(1...Self.maximumPages))
        let sameOrigin = reader.value("same-origin", in: section, .boolean)
        if case .first(let count) = load, let entry = section["load"], count > max ?? PagesDefinition.defaultMax {
            reader.addError(
                entry.value.location, section.path("load"),
                "'load' is greater than 'max' (\(max ?? PagesDefinition.defaultMax))",
                remedy: max == nil
                    ? "\(PagesDefinition.defaultMax) is the default of 'max': set 'max' too"
                    : "lower 'load', or raise 'max'",
                related: section["max"]?.location)
        }
        let sync = syncRule(in: section, load: load)
        if let entry = section["same-origin"], let next {
            switch next {
            case .link, .url: break
            case .cursor, .offset, .page, .lastKey:
                reader.warning(
                    entry.location, section.path("same-origin"),
                    "'same-origin' has no effect here: all pages have the same URL",
                    remedy: "leave it out; it applies to 'next: link' and 'next: {url: …}'")
            }
        }
        guard let next else { return nil }
        return PagesDefinition(
            next: next, items: items ?? PagesDefinition.defaultItems, key: key, load: load ?? .all,
            max: max ?? PagesDefinition.defaultMax, sameOrigin: sameOrigin ?? true, sync: sync)
    }

    /// The key `sync-token`, which requests only the changes since the last run.
    private func syncRule(in pages: Section, load: PageLoad?) -> SyncRule? {
        guard let entry = pages["sync-token"], let section = reader.section(.syncToken, "sync-token", in: pages) else {
            return nil
        }
        let program = reader.value("token", in: section, .program)
        let parameter = reader.value("parameter", in: section, .parameter)
        let deleted = reader.value("deleted", in: section, .program)
        if section["token"] == nil {
            reader.missing(
                section.location, section.path("token"), "'sync-token' has no 'token'",
                remedy: "add a program that returns the token, such as token: .nextSyncToken")
        }
        if section["parameter"] == nil {
            reader.missing(
                section.location, section.path("parameter"), "'sync-token' has no 'parameter'",
                remedy: "add the name of the query parameter for the token, such as parameter: syncToken")
        }
        if pages["key"] == nil {
            reader.missing(
                entry.location, pages.path("key"), "'sync-token' needs 'key'",
                remedy: "add the key by which changes are merged into the items: key: .id")
        }
        if case .first? = load, let other = pages["load"] {
            reader.addError(
                other.location, pages.path("load"), "'load' and 'sync-token' exclude each other",
                remedy: "the last page contains the token: write load: all", related: entry.location)
        }
        guard let program, let parameter else { return nil }
        return SyncRule(program, parameter: parameter, deleted: deleted)
    }

    // MARK: next

    private static let nextRemedy =
        "write next: link, or one of {url: …}, {cursor: …, parameter: …}, {offset: …, size: …}, {page: …, size: …}, "
        + "{last-key: …, parameter: …, size: …}"

    /// The keys that each way to the next page allows, besides the key that selects the way.
    private static let nextKeys: [(kind: String, others: [String])] = [
        ("url", []),
        ("cursor", ["parameter", "more"]),
        ("offset", ["size", "size-parameter", "total", "past-end"]),
        ("page", ["first", "size", "size-parameter", "total", "past-end"]),
        ("last-key", ["parameter", "more", "size", "size-parameter"]),
    ]

    private func nextRule(in pages: Section) -> NextRule? {
        guard let entry = pages["next"] else {
            reader.missing(pages.location, pages.path("next"), "'pages' has no 'next'", remedy: Self.nextRemedy)
            return nil
        }
        guard case .mapping = entry.value.content else {
            return reader.value("next", in: pages, .linkWord).map { _ in .link }
        }
        guard let next = reader.section(.next, "next", in: pages) else { return nil }
        let kinds = Self.nextKeys.filter { next[$0.kind] != nil }
        guard let (kind, others) = kinds.first else {
            // An unknown key was reported already, and may be a misspelling of the missing one.
            guard next.entries.allSatisfy({ KeyCatalogue.Section.next.keys.contains($0.key) }) else { return nil }
            reader.missing(
                next.location, pages.path("next"), "'next' does not define how to find the next page",
                remedy: Self.nextRemedy)
            return nil
        }
        let before = reader.errors.count
        for (other, _) in kinds.dropFirst() {
            guard let entry = next[other] else { continue }
            reader.addError(
                entry.location, next.path(other), "'\(other)' and '\(kind)' exclude each other",
                remedy: "keep one; a drop-in removes the other with '\(other): null'", related: next[kind]?.location)
        }
        reportKeys(otherThan: [kind] + others + kinds.map(\.kind), of: kind, in: next)
        let rule = rule(kind, in: next)
        return reader.errors.count == before ? rule : nil
    }

    private func reportKeys(otherThan keys: [String], of kind: String, in next: Section) {
        for entry in next.entries where KeyCatalogue.Section.next.keys.contains(entry.key) && !keys.contains(entry.key)
        {
            if case .removed = entry.value.content { continue }
            let owners = Self.nextKeys.filter { $0.others.contains(entry.key) }.map { "'\($0.kind)'" }
            reader.addError(
                entry.location, next.path(entry.key),
                "'\(entry.key)' cannot be used with '\(kind)', only with \(owners.joined(separator: ", "))",
                remedy: "leave it out", related: next[kind]?.location)
        }
    }

    private func rule(_ kind: String, in next: Section) -> NextRule? {
        switch kind {
        case "url":
            return reader.value("url", in: next, .program).map(NextRule.url)
        case "cursor":
            return cursor("cursor", in: next).map(NextRule.cursor)
        case "offset":
            let size = pageSize(in: next)
            return reader.value("offset", in: next, .parameter).map { .offset(parameter: $0, size) }
        case "page":
            let size = pageSize(in: next)
            let first = reader.value("first", in: next, .integer(0...Self.maximumPages)) ?? 1
            return reader.value("page", in: next, .parameter).map { .page(parameter: $0, first: first, size) }
        default:
            let size = pageSize(in: next)
            return cursor("last-key", in: next).map { .lastKey($0, size) }
        }
    }

    private func cursor(_ key: String, in next: Section) -> CursorRule? {
        let program = reader.value(key, in: next, .program)
        let parameter = reader.value("parameter", in: next, .parameter)
        let more = reader.value("more", in: next, .program)
        if next["parameter"] == nil {
            reader.missing(
                next.location, next.path("parameter"), "'\(key)' has no 'parameter'",
                remedy: "add the name of the query parameter for its value, such as parameter: after")
        }
        guard let program, let parameter else { return nil }
        return CursorRule(program, parameter: parameter, more: more)
    }

    private func pageSize(in next: Section) -> PageSize {
        let size = reader.value("size", in: next, .integer(1...Self.maximumPageSize))
        let parameter = reader.value("size-parameter", in: next, .parameter)
        if let entry = next["size-parameter"], next["size"] == nil {
            reader.missing(
                entry.location, next.path("size-parameter"), "'size-parameter' needs 'size'",
                remedy: "add the number of items of a page: size: 100")
        }
        return PageSize(
            size, parameter: parameter, total: reader.value("total", in: next, .program),
            pastEnd: reader.value("past-end", in: next, .integer(400...499)))
    }
}

extension ValueKind where Value == String {
    /// `next` without keys.
    fileprivate static let linkWord = ValueKind(name: "'link', or keys such as {cursor: .next, parameter: cursor}") {
        scalar throws(ValueError) in
        guard scalar.text == "link" else {
            throw ValueError(
                "has to be 'link' or keys with values, not \(scalar.text.quoted)",
                remedy: scalar.text.hasPrefix(".")
                    ? "for a program that returns the URL, write {url: \(scalar.text)}" : nil)
        }
        return scalar.text
    }

    /// The name of a query parameter. Freshet percent-encodes it where necessary.
    fileprivate static let parameter = ValueKind(name: "the name of a query parameter such as cursor") {
        scalar throws(ValueError) in
        let name = scalar.text
        guard (1...100).contains(name.utf8.count), name.utf8.allSatisfy({ (0x21..<0x7F).contains($0) }),
            !name.utf8.contains(where: { "?&=#%".utf8.contains($0) })
        else {
            throw ValueError(
                "is not the name of a query parameter",
                remedy: "write only the name, without '?', '&', '=' and the value; Freshet percent-encodes it")
        }
        return name
    }
}

extension ValueKind where Value == PageLoad {
    fileprivate static let pageLoad = ValueKind(name: "'all', or a number of pages such as 1") {
        scalar throws(ValueError) in
        if scalar.text == "all" { return .all }
        return .first(try ValueKind<Int>.integer(1...PagesReader.maximumPages).read(scalar))
    }
}
