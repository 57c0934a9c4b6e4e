import CCurl

/// What an answer says of how long it is fresh (RFC 9111, 4.2), to a private cache.
struct OriginFreshness: Hashable, Sendable {
    /// All lines of `Cache-Control`, with commas between.
    var cacheControl: String?
    var expires: String?
    var date: String?
    var age: String?

    /// How much longer it is fresh; zero: not any more; nil: it says nothing of that. Nothing is guessed.
    ///
    /// `max-age` counts, and without it `Expires`. What cannot be understood means: not any more (RFC 9111, 4.2.1), and
    /// so does `no-cache`. `s-maxage` is for shared caches; `no-store`, `immutable`, `must-revalidate` and the `stale-`
    /// directives say nothing of how long.
    ///
    /// - Parameters:
    ///   - delay: since the request began.
    ///   - now: wall-clock time in seconds since 1970.
    func remaining(after delay: Duration, now: Int64) -> Duration? {
        let control = CacheControl(cacheControl ?? "")
        if control.noCache { return .zero }
        let date = date.flatMap(Self.seconds)
        let lifetime: Duration
        if let maxAge = control.maxAge {
            lifetime = maxAge
        } else if let expires {
            guard let end = Self.seconds(of: expires) else { return .zero }
            lifetime = .seconds(end - (date ?? now))
        } else {
            return nil
        }
        // RFC 9111, 4.2.3: by the clocks, and by what caches on the way have counted; the older is believed.
        let apparent = Duration.seconds(max(0, now - (date ?? now)))
        let counted = (age.flatMap(CacheControl.seconds) ?? .zero) + max(.zero, delay)
        return max(.zero, lifetime - max(apparent, counted))
    }

    private static func seconds(of date: String) -> Int64? {
        let seconds = curl_getdate(date, nil)
        return seconds >= 0 ? Int64(seconds) : nil
    }
}

/// The directives of `Cache-Control` (RFC 9111, 5.2.2) that say how long an answer is fresh.
struct CacheControl: Hashable, Sendable {
    /// Not to be used without asking; also if only some fields are named.
    private(set) var noCache = false
    /// Zero if it cannot be understood; of several the first one.
    private(set) var maxAge: Duration?

    /// - Parameter field: directives with commas between, each a name, some with a value, which may be in quotes.
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

    /// `delta-seconds` (RFC 9111, 1.2.2): what is too large to count with is 2³¹; nil for what is no number.
    static func seconds(_ text: some StringProtocol) -> Duration? {
        let digits = text.utf8.filter { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        guard !digits.isEmpty, digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return nil
        }
        return .seconds(min(Int64(String(decoding: digits, as: UTF8.self)) ?? .max, 1 << 31))
    }

    /// Splits where a character stands outside of quotes (RFC 9110, 5.6.4).
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
