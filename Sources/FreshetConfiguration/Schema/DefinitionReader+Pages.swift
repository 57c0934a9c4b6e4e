import FreshetPipelines

extension DefinitionReader {
    /// The most pages of a set that can be allowed: each is a request.
    static let maximumPages = 100_000
    /// The most items of a page that can be counted on.
    static let maximumPageSize = 1_000_000

    /// `pages` beside a source; nil if it is not there or faulty.
    mutating func pages(of source: SourceDefinition?, in parent: Section) -> PagesDefinition? {
        guard let entry = parent["pages"] else { return nil }
        switch source {
        case .http, nil: break
        case .command, .file, .copy, .joined:
            error(
                entry.location, parent.path("pages"),
                "'pages' belongs to a 'url': other sources have one answer", remedy: "leave it out")
            return nil
        }
        guard let section = section(.pages, "pages", in: parent) else { return nil }
        let next = nextRule(in: section)
        let items = value("items", in: section, .program)
        let key = value("key", in: section, .program)
        let load = value("load", in: section, .pageLoad)
        let max = value("max", in: section, .integer(1...Self.maximumPages))
        let sameOrigin = value("same-origin", in: section, .boolean)
        if case .first(let count) = load, let entry = section["load"], count > max ?? PagesDefinition.defaultMax {
            error(
                entry.value.location, section.path("load"),
                "'load' is more than 'max', \(max ?? PagesDefinition.defaultMax)",
                remedy: max == nil ? "that is the default: configure 'max' too" : nil,
                related: section["max"]?.location)
        }
        let sync = syncRule(in: section, load: load)
        if let entry = section["same-origin"], let next {
            switch next {
            case .link, .url: break
            case .cursor, .offset, .page, .lastKey:
                warning(
                    entry.location, section.path("same-origin"),
                    "'same-origin' means nothing here: the next page has the URL of this one",
                    remedy: "it belongs to 'next: link' and 'next: {url: …}'")
            }
        }
        guard let next else { return nil }
        return PagesDefinition(
            next: next, items: items ?? PagesDefinition.defaultItems, key: key, load: load ?? .all,
            max: max ?? PagesDefinition.defaultMax, sameOrigin: sameOrigin ?? true, sync: sync)
    }

    /// What asks for changes alone.
    private mutating func syncRule(in pages: Section, load: PageLoad?) -> SyncRule? {
        guard let entry = pages["sync-token"], let section = section(.syncToken, "sync-token", in: pages) else {
            return nil
        }
        let program = value("token", in: section, .program)
        let parameter = value("parameter", in: section, .parameter)
        let deleted = value("deleted", in: section, .program)
        if section["token"] == nil {
            missing(
                section.location, section.path("token"), "'sync-token' has no 'token'",
                remedy: "write a program that gives it, such as token: .nextSyncToken")
        }
        if section["parameter"] == nil {
            missing(
                section.location, section.path("parameter"), "'sync-token' has no 'parameter'",
                remedy: "name the query parameter that takes it, such as parameter: syncToken")
        }
        if pages["key"] == nil {
            missing(
                entry.location, pages.path("key"), "'sync-token' stands without 'key'",
                remedy: "changes are put to the items that they are changes of: key: .id")
        }
        if case .first? = load, let other = pages["load"] {
            error(
                other.location, pages.path("load"), "'load' and 'sync-token' exclude each other",
                remedy: "the token stands in the last page: load: all", related: entry.location)
        }
        guard let program, let parameter else { return nil }
        return SyncRule(program, parameter: parameter, deleted: deleted)
    }

    // MARK: next

    private static let nextRemedy =
        "write next: link, or one of {url: …}, {cursor: …, parameter: …}, {offset: …, size: …}, {page: …, size: …}, "
        + "{last-key: …, parameter: …, size: …}"

    /// What belongs to which way to the next page, besides the key that names it.
    private static let nextKeys: [(kind: String, others: [String])] = [
        ("url", []),
        ("cursor", ["parameter", "more"]),
        ("offset", ["size", "size-parameter", "total", "past-end"]),
        ("page", ["first", "size", "size-parameter", "total", "past-end"]),
        ("last-key", ["parameter", "more", "size", "size-parameter"]),
    ]

    private mutating func nextRule(in pages: Section) -> NextRule? {
        guard let entry = pages["next"] else {
            missing(pages.location, pages.path("next"), "'pages' has no 'next'", remedy: Self.nextRemedy)
            return nil
        }
        guard case .mapping = entry.value.content else {
            return value("next", in: pages, .linkWord).map { _ in .link }
        }
        guard let next = section(.next, "next", in: pages) else { return nil }
        let kinds = Self.nextKeys.filter { next[$0.kind] != nil }
        guard let (kind, others) = kinds.first else {
            // A key that the format does not have was perhaps meant to say it.
            guard next.entries.allSatisfy({ KeyCatalogue.Section.next.keys.contains($0.key) }) else { return nil }
            missing(next.location, pages.path("next"), "'next' does not say how", remedy: Self.nextRemedy)
            return nil
        }
        let before = faults.count
        for (other, _) in kinds.dropFirst() {
            guard let entry = next[other] else { continue }
            error(
                entry.location, next.path(other), "'\(other)' and '\(kind)' exclude each other",
                remedy: "keep one; a drop-in takes the other away with '\(other): null'", related: next[kind]?.location)
        }
        refuseOthers(than: [kind] + others + kinds.map(\.kind), of: kind, in: next)
        let rule = rule(kind, in: next)
        return faults.count == before ? rule : nil
    }

    private mutating func refuseOthers(than keys: [String], of kind: String, in next: Section) {
        for entry in next.entries where KeyCatalogue.Section.next.keys.contains(entry.key) && !keys.contains(entry.key)
        {
            if case .removed = entry.value.content { continue }
            let homes = Self.nextKeys.filter { $0.others.contains(entry.key) }.map { "'\($0.kind)'" }
            error(
                entry.location, next.path(entry.key),
                "'\(entry.key)' does not belong to '\(kind)', but to \(homes.joined(separator: ", "))",
                remedy: "leave it out", related: next[kind]?.location)
        }
    }

    private mutating func rule(_ kind: String, in next: Section) -> NextRule? {
        switch kind {
        case "url":
            return value("url", in: next, .program).map(NextRule.url)
        case "cursor":
            return cursor("cursor", in: next).map(NextRule.cursor)
        case "offset":
            let size = pageSize(in: next)
            return value("offset", in: next, .parameter).map { .offset(parameter: $0, size) }
        case "page":
            let size = pageSize(in: next)
            let first = value("first", in: next, .integer(0...Self.maximumPages)) ?? 1
            return value("page", in: next, .parameter).map { .page(parameter: $0, first: first, size) }
        default:
            let size = pageSize(in: next)
            return cursor("last-key", in: next).map { .lastKey($0, size) }
        }
    }

    private mutating func cursor(_ key: String, in next: Section) -> CursorRule? {
        let program = value(key, in: next, .program)
        let parameter = value("parameter", in: next, .parameter)
        let more = value("more", in: next, .program)
        if next["parameter"] == nil {
            missing(
                next.location, next.path("parameter"), "'\(key)' has no 'parameter'",
                remedy: "name the query parameter that takes it, such as parameter: after")
        }
        guard let program, let parameter else { return nil }
        return CursorRule(program, parameter: parameter, more: more)
    }

    private mutating func pageSize(in next: Section) -> PageSize {
        let size = value("size", in: next, .integer(1...Self.maximumPageSize))
        let parameter = value("size-parameter", in: next, .parameter)
        if let entry = next["size-parameter"], next["size"] == nil {
            missing(
                entry.location, next.path("size-parameter"), "'size-parameter' stands without 'size'",
                remedy: "say how many items a page shall have: size: 100")
        }
        return PageSize(
            size, parameter: parameter, total: value("total", in: next, .program),
            pastEnd: value("past-end", in: next, .integer(400...499)))
    }
}

extension ValueKind where Value == String {
    /// `next` without keys.
    fileprivate static let linkWord = ValueKind(name: "'link', or keys such as {cursor: .next, parameter: cursor}") {
        scalar throws(ValueError) in
        guard scalar.text == "link" else {
            throw ValueError(
                "has to be 'link' or keys of its own, not \(scalar.text.quoted)",
                remedy: scalar.text.hasPrefix(".") ? "for a program that gives the URL: {url: \(scalar.text)}" : nil)
        }
        return scalar.text
    }

    /// The name of a query parameter, which is percent-encoded as far as it needs that.
    fileprivate static let parameter = ValueKind(name: "the name of a query parameter such as cursor") {
        scalar throws(ValueError) in
        let name = scalar.text
        guard (1...100).contains(name.utf8.count), name.utf8.allSatisfy({ (0x21..<0x7F).contains($0) }),
            !name.utf8.contains(where: { "?&=#%".utf8.contains($0) })
        else {
            throw ValueError(
                "is not the name of a query parameter",
                remedy: "write it alone, without '?', '&', '=' and its value; it is percent-encoded as it has to be")
        }
        return name
    }
}

extension ValueKind where Value == PageLoad {
    fileprivate static let pageLoad = ValueKind(name: "'all', or a number of pages such as 1") {
        scalar throws(ValueError) in
        if scalar.text == "all" { return .all }
        return .first(try ValueKind<Int>.integer(1...DefinitionReader.maximumPages).read(scalar))
    }
}
