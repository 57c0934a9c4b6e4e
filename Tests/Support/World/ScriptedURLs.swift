package import FreshetPipelines

/// References as scripts use them: absolute URLs, paths from the root, and `?query`. The real resolver is libcurl.
package enum ScriptedURLs {
    package static func resolve(_ reference: String, against base: String) -> WebAddress? {
        let url: String
        if reference.contains("://") {
            url = reference
        } else {
            let root = base.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3)
            let path = base.prefix { $0 != "?" }
            url = reference.hasPrefix("?") ? path + reference : root.joined(separator: "/") + reference
        }
        let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count >= 3, ["http:", "https:"].contains(parts[0]) else { return nil }
        return WebAddress(
            url: String(url), host: String(parts[2].prefix { $0 != ":" }), origin: parts[0] + "//" + parts[2])
    }
}
