/// The keys of the format: one list for the reader, its suggestions and the test that compares it with the manual.
package enum KeyCatalogue {
    /// A mapping of the format.
    package enum Section: String, CaseIterable, Hashable, Sendable {
        case pipeline, transform, source, pages, next, each, credential, oauth2, refresh, dbus, retry, power
        case needsNetwork = "needs-network"
        case syncToken = "sync-token"
        case check, sha256, minisign, cache, daemon
        /// `cache` of freshet.yaml.
        case daemonCache = "daemon-cache"
        /// The memory of the daemon and its helpers.
        case daemonMemory = "memory"
        /// `fleet` of freshet.yaml.
        case daemonFleet = "daemon-fleet"
        case daemonFallback = "fallback"
        /// `fleet` of a pipeline.
        case fleet
        case rollOut = "roll-out"
        /// One parameter.
        case parameter
        /// One hook.
        case hook = "on-change"
        case hookLimit = "hook-limit"
        /// The file of a hook of several pipelines.
        case sharedHook = "shared-hook"

        /// The key that leads to it; empty for a whole file.
        package var path: String {
            switch self {
            case .pipeline, .daemon, .sharedHook: ""
            case .daemonCache: "cache"
            case .daemonMemory: rawValue
            case .daemonFleet: "fleet"
            case .daemonFallback: "fleet.fallback"
            case .rollOut: "fleet.roll-out"
            case .hookLimit: "on-change.limit"
            case .credential: "source.credential"
            case .oauth2: "source.credential.oauth2"
            case .dbus, .retry, .needsNetwork, .power: "refresh.\(rawValue)"
            case .parameter: "parameters.NAME"
            case .pages: "source.pages"
            case .next: "source.pages.next"
            case .syncToken: "source.pages.sync-token"
            case .each: "source.each"
            case .sha256, .minisign: "check.\(rawValue)"
            case .transform, .source, .refresh, .check, .cache, .hook, .fleet: rawValue
            }
        }

        /// The keys that this version reads, in the manual's order.
        package var keys: [String] { KeyCatalogue.keys[self] ?? [] }

        /// The keys that no other section documents: `each` has the keys of `source` and further keys, and a hook of
        /// several pipelines has those of `on-change` and of a burst of signals.
        package var ownKeys: [String] {
            switch self {
            case .each: keys.filter { !Section.source.keys.contains($0) }
            case .sharedHook: ["on-change-of"]
            default: keys
            }
        }

        /// The keys of the format that this version does not support yet. They are errors: a configuration with such a
        /// key would not work as written.
        package var unsupportedKeys: [String] { KeyCatalogue.unsupportedKeys[self] ?? [] }

        /// Whether the section belongs to the files of pipelines.
        var isOfPipelines: Bool { file == .pipeline }

        /// A kind of file.
        private enum File { case pipeline, daemon, hook }

        private var file: File {
            switch self {
            case .daemon, .daemonCache, .daemonMemory, .daemonFleet, .daemonFallback: .daemon
            case .sharedHook: .hook
            default: .pipeline
            }
        }

        /// The location of the section as text for a message about another section.
        private func place(relativeTo other: Section) -> String {
            if file == other.file { return path.isEmpty ? "at the top of the file" : "below '\(path)'" }
            let place =
                switch file {
                case .pipeline: "in a pipeline's own file"
                case .daemon: "in freshet.yaml"
                case .hook: "in the file of a hook, hooks/NAME.yaml"
                }
            return path.isEmpty ? place : "\(place), below '\(path)'"
        }

        /// The error for a key that this section does not have.
        func error(forKey key: String) -> ValueError {
            if unsupportedKeys.contains(key) {
                return ValueError("\(key.quoted) is not supported by this version", remedy: "leave it out")
            }
            if let known = KeySynonyms.error(forKey: key, in: self) { return known }
            if let colon = key.firstIndex(of: ":"), keys.contains(String(key[..<colon])) {
                return ValueError(
                    "unknown key \(key.quoted)",
                    remedy: "write a space after the ':' of '\(key[..<colon])'")
            }
            // Sections of the same kind of file first.
            let others =
                Section.allCases.filter { $0 != self && $0.file == file }
                + Section.allCases.filter { $0.file != file }
            let owners = others.filter { $0.ownKeys.contains(key) && key != "format" }
            if !owners.isEmpty {
                let places = owners.map { $0.place(relativeTo: self) }.joined(separator: " or ")
                return ValueError("\(key.quoted) belongs \(places)", remedy: "move it there")
            }
            if let near = Suggestion.nearest(to: key, among: keys) {
                return ValueError("unknown key \(key.quoted)", remedy: "did you mean '\(near)'?")
            }
            for other in others {
                guard let near = Suggestion.nearest(to: key, among: other.keys) else { continue }
                return ValueError(
                    "unknown key \(key.quoted)", remedy: "did you mean '\(near)' \(other.place(relativeTo: self))?")
            }
            if others.contains(where: { $0.unsupportedKeys.contains(key) }) {
                return ValueError("\(key.quoted) is not supported by this version", remedy: "leave it out")
            }
            return ValueError("unknown key \(key.quoted)", remedy: "the keys here are \(keys.joined(separator: ", "))")
        }
    }

    private static let keys: [Section: [String]] = [
        .pipeline: [
            "format", "description", "parameters", "source", "sources", "combine", "transform", "refresh", "check",
            "cache", "on-change", "fleet",
        ],
        .transform: ["jq", "template", "escape"],
        .parameter: ["default", "choices", "pattern", "quiet"],
        .source: [
            "url", "urls", "order", "file", "exec", "pipeline", "headers", "credential", "credential-file", "method",
            "body", "content-type", "unix-socket",
            "client-certificate", "client-key", "certificate-authority", "redirects", "allow-unframed", "proxy",
            "unpack",
            "format",
            "pages", "transform", "each",
        ],
        .pages: ["next", "items", "key", "load", "max", "same-origin", "sync-token"],
        .syncToken: ["token", "parameter", "deleted"],
        .next: [
            "url", "cursor", "offset", "page", "last-key", "parameter", "more", "first", "size", "size-parameter",
            "total", "past-end",
        ],
        .each: [
            "as", "key", "concurrency", "on-error", "publish", "same-origin", "url", "file", "exec", "pipeline",
            "headers",
            "credential", "credential-file",
            "method", "body", "content-type", "unix-socket", "client-certificate", "client-key",
            "certificate-authority", "redirects", "allow-unframed", "proxy", "unpack", "format", "pages", "transform",
            "each",
        ],
        .credential: ["name", "file", "as", "header", "oauth2"],
        .oauth2: ["token-url", "client-id", "secret", "secret-file", "scope"],
        .refresh: [
            "on", "files", "dbus", "after", "every", "at", "random-delay", "quiet", "at-most", "min-interval",
            "when-running",
            "fresh-for", "honour-origin", "deadline", "retry", "budget", "needs-network", "metered", "power",
        ],
        .dbus: ["bus", "sender", "path", "path-namespace", "interface", "member", "arg0"],
        .retry: ["from", "to"],
        .needsNetwork: ["probe", "status"],
        .power: ["on-battery"],
        .check: [
            "jq", "min-bytes", "max-bytes", "type", "format", "items", "min-items", "shrink", "valid-until", "made-at",
            "made-within", "sha256", "minisign", "exec", "timeout",
        ],
        .sha256: ["url", "name"],
        .minisign: ["key", "key-file", "url"],
        .cache: ["file", "files", "format", "mode", "group", "keep", "max-age", "withdraw", "key"],
        .hook: ["exec", "reload-unit", "timeout", "splay", "limit"],
        .hookLimit: ["group", "at-once"],
        .sharedHook: [
            "format", "description", "on-change-of", "exec", "reload-unit", "quiet", "at-most", "timeout", "splay",
            "limit",
        ],
        .daemon: [
            "format", "splay", "concurrency", "origin-concurrency", "network-target", "network-probe", "cache",
            "memory", "fleet",
        ],
        .daemonCache: ["max-total", "min-free"],
        .daemonMemory: ["max"],
        .daemonFleet: [
            "name", "servers", "certificate-authority", "credential", "machine", "role", "publishers", "domain",
            "mirror",
            "spread", "fallback",
        ],
        .daemonFallback: ["after", "rate"],
        .fleet: ["share", "grace", "roll-out"],
        .rollOut: ["steps", "each", "failures"],
    ]

    private static let unsupportedKeys: [Section: [String]] = [:]

    /// Whether any section has this key.
    static func isKey(_ word: String) -> Bool { keys.values.contains { $0.contains(word) } }
}
