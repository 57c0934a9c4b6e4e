/// How long an answer is fresh for a private cache, according to its fields (RFC 9111, 4.2).
struct OriginFreshness: Hashable, Sendable {
    /// All lines of `Cache-Control`, joined with commas.
    var cacheControl: String?
    var expires: String?
    var date: String?
    var age: String?

    /// How much longer the answer is fresh; zero if it is stale; nil if its fields do not determine it. There is no
    /// heuristic freshness.
    ///
    /// `max-age` counts, and without it `Expires`. An invalid value means stale (RFC 9111, 4.2.1), and so does
    /// `no-cache`. `s-maxage` is for shared caches; `no-store`, `immutable`, `must-revalidate` and the `stale-`
    /// directives do not determine a time.
    ///
    /// - Parameters:
    ///   - delay: the time since the request began.
    ///   - now: wall-clock time in seconds since 1970.
    func remaining(after delay: Duration, now: Int64) -> Duration? {
        let control = CacheControl(cacheControl ?? "")
        if control.noCache { return .zero }
        let date = date.flatMap(HTTPDate.seconds)
        let lifetime: Duration
        if let maxAge = control.maxAge {
            lifetime = maxAge
        } else if let expires {
            guard let end = HTTPDate.seconds(expires) else { return .zero }
            lifetime = .seconds(end - (date ?? now))
        } else {
            return nil
        }
        // RFC 9111, 4.2.3: the age by the clocks, and the age that caches in between have counted; the larger age is
        // used.
        let apparent = Duration.seconds(max(0, now - (date ?? now)))
        let counted = (age.flatMap(CacheControl.seconds) ?? .zero) + max(.zero, delay)
        return max(.zero, lifetime - max(apparent, counted))
    }
}

extension OriginFreshness {
    init(_ head: ResponseHead) {
        self.init(
            cacheControl: head.list("cache-control"), expires: head["expires"], date: head["date"], age: head["age"])
    }
}

/// The directives of `Cache-Control` (RFC 9111, 5.2.2) that determine how long an answer is fresh.
struct CacheControl: Hashable, Sendable {
    /// Whether the answer must be validated before each use; also true if the directive names only some fields.
    private(set) var noCache = false
    /// The value of the first `max-age`; zero if it is invalid.
    private(set) var maxAge: Duration?

    /// - Parameter field: directives, separated by commas; each is a name, perhaps with a value, which may be in
    ///   quotes.
    init(_ field: String) {
        for directive in Self.split(field, at: ",") {
            let parts = Self.split(directive, at: "=")
            guard let name = parts.first?.trimmed.lowercased() else { continue }
            switch name {
            case "no-cache":
                noCache = true
            case "max-age" where maxAge == nil:
                maxAge = parts.count == 2 ? Self.seconds(parts[1].trimmed.unquoted) ?? .zero : .zero
            default:
                break
            }
        }
    }

    /// Parses `delta-seconds` (RFC 9111, 1.2.2). A larger number becomes 2³¹; nil if the text is not a number.
    static func seconds(_ text: some StringProtocol) -> Duration? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return nil
        }
        return .seconds(min(Int64(text) ?? .max, 1 << 31))
    }

    /// Splits a text at a character outside of quotes (RFC 9110, 5.6.4).
    private static func split(_ text: some StringProtocol, at separator: Character) -> [String] {
        var parts = [""]
        var isQuoted = false
        var isEscaped = false
        for character in text {
            if character == separator, !isQuoted {
                parts.append("")
                continue
            }
            if character == "\"", !isEscaped { isQuoted.toggle() }
            isEscaped = isQuoted && character == "\\" && !isEscaped
            parts[parts.count - 1].append(character)
        }
        return parts
    }
}

extension String {
    fileprivate var trimmed: Substring {
        func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }
        let start = drop(while: isBlank)
        guard let end = start.lastIndex(where: { !isBlank($0) }) else { return "" }
        return start[...end]
    }
}

extension Substring {
    fileprivate var unquoted: Substring {
        count >= 2 && hasPrefix("\"") && hasSuffix("\"") ? dropFirst().dropLast() : self
    }
}
