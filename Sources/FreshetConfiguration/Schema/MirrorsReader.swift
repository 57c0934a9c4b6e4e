import FreshetPipelines

/// Reads the mirrors of a source: `urls` and `order`.
struct MirrorsReader {
    let reader: DefinitionReader

    /// The request to the mirrors; nil if `urls` is invalid.
    func source(in section: Section, _ headers: [HTTPHeader]) -> HTTPSource? {
        guard let entry = section["urls"], let urls = reader.list("urls", in: section, .url) else { return nil }
        checkPlace(of: entry, in: section)
        let path = section.path("urls")
        let count = if case .sequence(let nodes) = entry.value.content { nodes.count } else { 1 }
        guard (2...Mirrors.most).contains(count) else {
            reader.addError(
                entry.value.location, path, "'urls' has \(count) URLs, and needs 2 to \(Mirrors.most)",
                remedy: count < 2 ? "write a single URL as 'url'" : "keep the best \(Mirrors.most)")
            return nil
        }
        // Each invalid URL is an error already.
        guard urls.count >= 2 else { return nil }
        var known: Set<String> = []
        for url in urls {
            PlaceholderChecker(reader: reader).checkPlaceholders(of: url.value.url, entry, in: section, among: [])
            if !known.insert(url.value.url).inserted {
                reader.addError(url.location, path, "'urls' has the same URL twice", remedy: "leave one out")
            }
        }
        if Set(urls.map { $0.value.url.lowercased().hasPrefix("https://") }).count > 1 {
            reader.addError(
                entry.value.location, path, "'urls' has encrypted and unencrypted URLs",
                remedy: "begin all of them with https://: an unencrypted mirror would make the others useless")
        }
        var source = RequestReader(reader: reader).request(for: urls[0].value, headers, in: section)
        source.mirrors = Mirrors(
            urls.map { Mirrors.Mirror(url: $0.value.url, host: $0.value.host) },
            order: reader.value("order", in: section, .choice()) ?? .listed)
        PlaceholderChecker(reader: reader).checkPlaceholders(of: source, in: section, among: [])
        for (mirror, location) in zip(source.alternatives, urls.map(\.location)) {
            if mirror.headers.contains(where: { $0.credential != nil }), !mirror.mayCarryCredentials {
                reader.addError(
                    location, path, "a credential would be sent to '\(mirror.host)' unencrypted",
                    remedy: "begin the URL with https://; http:// is allowed only for this host (localhost, 127.0.0.1)",
                    related: section["credential"]?.location)
            }
            ExposedSecretChecker(reader: reader).warn(about: mirror, in: section)
        }
        return source
    }

    /// Checks that `order` has mirrors.
    func checkOrder(in section: Section) {
        guard section["urls"] == nil, let entry = section["order"] else { return }
        reader.addError(
            entry.location, section.path(entry.key), "'order' needs 'urls'", remedy: "leave it out, or add mirrors")
    }

    /// Only one answer that is the whole content has mirrors: parts from different mirrors may be of different moments.
    private func checkPlace(of entry: Node.Entry, in section: Section) {
        if section.keyPath != "source" {
            reader.addError(
                entry.location, section.path(entry.key), "'urls' is allowed only in the single 'source' of a pipeline",
                remedy: "write one 'url', or make another pipeline of this source and use it with 'pipeline'")
        }
        for key in ["pages", "each", "unix-socket"] {
            guard let other = section[key] else { continue }
            reader.addError(
                other.location, section.path(key), "'\(key)' cannot be used with 'urls'",
                remedy: "write one 'url', or leave it out", related: entry.location)
        }
    }
}
