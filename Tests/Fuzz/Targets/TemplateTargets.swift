@testable import FreshetPipelines

extension FuzzTarget {
    /// A URL with placeholders. The value for all of them follows after a line with `%%`.
    static let urlTemplate = FuzzTarget(
        "url-template", limit: URLTemplate.maximumLength,
        shapes: [
            CostShape("placeholders", before: "https://a.example/", unit: "{a}/", upTo: 8_000),
            CostShape("placeholders in a query", before: "https://a.example/?", unit: "a={a.b}&", upTo: 8_000),
            CostShape(
                "placeholders in one segment", before: "https://a.example/", unit: "{a}", after: "\n%%\nb",
                upTo: 8_000),
            CostShape("text", before: "https://a.example/", unit: "a", upTo: 8_000),
            CostShape("opening braces", before: "https://a.example/", unit: "{", upTo: 8_000),
            CostShape("dots in a placeholder", before: "https://a.example/{a", unit: ".a", after: "}", upTo: 8_000),
            CostShape("parameters", before: "https://a.example/?a", unit: "&b=c", upTo: 8_000),
            CostShape("escapes", before: "https://a.example/?", unit: "%61", upTo: 8_000),
            CostShape(
                "combining characters", before: "https://a.example/{a", unit: "\u{301}\u{323}", after: "}", upTo: 8_000),
            CostShape("a long value", before: "https://a.example/{a}\n%%\n", unit: "a", upTo: 8_000),
        ],
        read: { input in
            let parts = sections(of: input)
            let text = parts.text(0)
            keep(URLTemplate.whole(text))
            if let template = try? URLTemplate(text) { keep(try? template.url { _ in parts.text(1) }) }
            keep(QueryParameter.setting("page", to: parts.text(1), in: text))
        },
        check: { input throws(FuzzViolation) in
            let parts = sections(of: input)
            let text = parts.text(0)
            let value = parts.text(1)
            let once = QueryParameter.setting("page", to: value, in: text)
            let twice = QueryParameter.setting("page", to: value, in: once)
            try hold("a parameter that is set twice is there once", once == twice)
            guard let template = try? URLTemplate(text), let url = try? template.url({ _ in value }) else { return }
            try hold("a URL has its longest length", url.utf8.count <= URLTemplate.maximumLength)
            if template.placeholders.isEmpty { try hold("without a place the URL is the text", url == text) }
            let host = text.utf8.prefix { $0 != UInt8(ascii: "{") }
            try hold("a value is behind the host", url.utf8.starts(with: host))
            func slashes(_ text: String) -> Int {
                text.utf8.count { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
            }
            try hold("no value adds a segment, a query or a fragment", slashes(url) == slashes(text))
            let again = try? URLTemplate(url)
            try hold("a value adds no place", again?.placeholders.isEmpty == true)
        })

    /// Other texts with placeholders, as each kind of text. The value for all of them follows after a line with `%%`.
    static let textTemplate = FuzzTarget(
        "text-template",
        shapes: [
            CostShape("places", unit: "{a}"), CostShape("opening braces", unit: "{"),
            CostShape("braces", unit: "{}"), CostShape("objects", unit: "{\"a\":{a}}"),
            CostShape("text", unit: "a"), CostShape("strings", unit: "\"{a}\","),
            CostShape("backslashes", before: "\"", unit: "\\"),
            CostShape("a long value", before: "{\"a\":\"{a}\"}\n%%\n", unit: "\n"),
            CostShape("a number", before: "{a}\n%%\n", unit: "9"),
            CostShape("combining characters", before: "{a", unit: "\u{301}\u{323}", after: "}"),
            CostShape("combining characters in a value", before: "{a}\n%%\nt", unit: "\u{301}\u{323}"),
        ],
        read: { input in
            let parts = sections(of: input)
            let value = parts.text(1)
            for kind in kinds { keep(try? TextTemplate(parts.text(0), as: kind).filled { _ in value }) }
        },
        check: { input throws(FuzzViolation) in
            let parts = sections(of: input)
            let text = parts.text(0)
            let value = parts.text(1)
            for kind in kinds {
                let template = TextTemplate(text, as: kind)
                let unchanged = try? template.filled { _ in nil }
                if let unchanged { try hold("without values a text stays as it is", unchanged == text) }
                if template.placeholders.isEmpty { continue }
                guard let filled = try? template.filled({ _ in value }) else { continue }
                switch kind {
                case .argument: break
                case .header:
                    try hold(
                        "a header field has its longest length", filled.utf8.count <= TextTemplate.maximumHeaderLength)
                    let breaks = text.utf8.count { $0 < 0x20 }
                    try hold("a value ends no header field", filled.utf8.count { $0 < 0x20 } == breaks)
                case .json:
                    try hold("a body has its longest length", filled.utf8.count <= TextTemplate.maximumBodyLength)
                    // If the text is JSON with `0` for each placeholder, it is JSON with every accepted value.
                    guard let plain = try? template.filled({ _ in "0" }), isJSON(Array(plain.utf8)) else { continue }
                    try hold("a value leaves a JSON text one", isJSON(Array(filled.utf8)))
                case .form:
                    func marks(_ text: String) -> Int {
                        text.utf8.count { $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: "=") }
                    }
                    try hold("a value adds no field to a form", marks(filled) == marks(text))
                }
            }
        })

    private static let kinds: [TextTemplate.Kind] = [.argument, .header, .json, .form]
}
