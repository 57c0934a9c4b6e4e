/// A text with placeholders that is not a URL: an argument of a command, the value of a header field, a body.
///
/// Braces have other meanings in such texts: only text that looks like a placeholder and has a value is replaced,
/// everything else stays as it is. A value cannot change the structure: it does not end a header field, a string of a
/// JSON text or a field of a form.
package struct TextTemplate: Hashable, Sendable {
    /// The kind of text.
    package enum Kind: Hashable, Sendable {
        /// Values are inserted unchanged: one argument stays one argument.
        case argument
        /// The value of a header field: one line of ASCII (RFC 9110, 5.5).
        case header
        /// A JSON text (RFC 8259): values are escaped in a string; elsewhere they must be a number, `true`, `false` or
        /// `null`.
        case json
        /// Fields of a form: values are percent-encoded.
        case form
    }

    /// Why a value is invalid.
    package enum ValidationError: Error, Hashable, Sendable {
        /// The value is not allowed in a header field.
        case notInHeader(URLTemplate.Placeholder)
        /// The placeholder is outside of a JSON string, and the value is not a number, `true`, `false` or `null`.
        case notAJSONValue(URLTemplate.Placeholder)
        case tooLong(limit: Int)
    }

    private enum Part: Hashable {
        case text(String)
        case placeholder(URLTemplate.Placeholder, inString: Bool)
    }

    /// The longest header field with its values, in bytes: a common limit of servers for all fields together.
    package static let maximumHeaderLength = 8192
    /// The longest body with its values, in bytes.
    package static let maximumBodyLength = 1 << 20

    private let kind: Kind
    private let parts: [Part]

    package init(_ text: String, as kind: Kind) {
        self.kind = kind
        // Byte by byte, as the receiver parses the text: a quotation mark with a combining accent is still a quotation
        // mark.
        var parts: [Part] = []
        var literal: [UInt8] = []
        func endLiteral() {
            if !literal.isEmpty { parts.append(.text(String(decoding: literal, as: UTF8.self))) }
            literal = []
        }
        var inString = false
        var isEscaped = false
        var rest = Substring(text).utf8
        while let byte = rest.first {
            if byte == UInt8(ascii: "{"), let (placeholder, end) = Self.placeholder(atStartOf: rest) {
                endLiteral()
                parts.append(.placeholder(placeholder, inString: inString))
                rest = rest[end...]
                continue
            }
            if isEscaped {
                isEscaped = false
            } else if inString, byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                inString.toggle()
            }
            literal.append(byte)
            rest = rest.dropFirst()
        }
        endLiteral()
        self.parts = parts
    }

    /// The placeholder that begins with a brace, and the index after it; nil: the text does not look like a
    /// placeholder. It reads no further than the name, so many braces cost no more than other text of the same length.
    private static func placeholder(
        atStartOf text: Substring.UTF8View
    ) -> (placeholder: URLTemplate.Placeholder, end: Substring.UTF8View.Index)? {
        let inner = text.dropFirst()
        let name = inner.prefix(while: URLTemplate.mayBeInPlaceholder)
        guard name.endIndex < text.endIndex, text[name.endIndex] == UInt8(ascii: "}"),
            let placeholder = URLTemplate.Placeholder(named: Substring(name))
        else { return nil }
        return (placeholder, text.index(after: name.endIndex))
    }

    /// Everything that looks like a placeholder, in order, including duplicates.
    package var placeholders: [URLTemplate.Placeholder] {
        parts.compactMap { if case .placeholder(let placeholder, _) = $0 { placeholder } else { nil } }
    }

    /// The text with these values.
    package func filled(_ value: (URLTemplate.Placeholder) -> String?) throws(ValidationError) -> String {
        var result: [UInt8] = []
        for part in parts {
            switch part {
            case .text(let text): result += text.utf8
            case .placeholder(let placeholder, let inString):
                guard let text = value(placeholder) else {
                    result += "{\(placeholder)}".utf8
                    continue
                }
                try append(text, at: placeholder, inString: inString, to: &result)
            }
            if let limit, result.count > limit { throw .tooLong(limit: limit) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private var limit: Int? {
        switch kind {
        case .argument: nil
        case .header: Self.maximumHeaderLength
        case .json, .form: Self.maximumBodyLength
        }
    }

    private func append(
        _ text: String, at placeholder: URLTemplate.Placeholder, inString: Bool, to result: inout [UInt8]
    ) throws(ValidationError) {
        switch kind {
        case .argument:
            result += text.utf8
        case .header:
            guard text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else { throw .notInHeader(placeholder) }
            result += text.utf8
        case .json where inString:
            Self.appendEscaped(text, to: &result)
        case .json:
            guard Self.isJSONValue(text) else { throw .notAJSONValue(placeholder) }
            result += text.utf8
        case .form:
            URLTemplate.append(text, to: &result)
        }
    }

    /// Appends a text, escaped for a JSON string (RFC 8259, 7).
    private static func appendEscaped(_ text: String, to result: inout [UInt8]) {
        let digits = Array("0123456789abcdef".utf8)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): result += [UInt8(ascii: "\\"), byte]
            case ..<0x20, 0x7F:
                result += "\\u00".utf8
                result += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: result.append(byte)
            }
        }
    }

    /// Whether a text is a number (RFC 8259, 6), `true`, `false` or `null`.
    static func isJSONValue(_ text: String) -> Bool {
        // By bytes: the value comes from an origin, and comparing strings may take quadratic time.
        if ["true", "false", "null"].contains(where: { text.utf8.elementsEqual($0.utf8) }) { return true }
        var rest = Substring(text).utf8
        func takeDigits() -> Int {
            let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            rest = rest.dropFirst(digits.count)
            return digits.count
        }
        if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
        let hasLeadingZero = rest.first == UInt8(ascii: "0")
        let whole = takeDigits()
        guard whole == 1 || (whole > 1 && !hasLeadingZero) else { return false }
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            guard takeDigits() > 0 else { return false }
        }
        if let mark = rest.first, mark | 0x20 == UInt8(ascii: "e") {
            rest = rest.dropFirst()
            if let sign = rest.first, "+-".utf8.contains(sign) { rest = rest.dropFirst() }
            guard takeDigits() > 0 else { return false }
        }
        return rest.isEmpty
    }
}

extension TextTemplate.Kind {
    /// The kind of a body with this content type; nil: the type is not supported.
    package init?(contentType: String) {
        let type = contentType.prefix { $0 != ";" && $0 != " " && $0 != "\t" }.lowercased()
        switch type {
        case "application/json", "text/json": self = .json
        case _ where type.hasSuffix("+json"): self = .json
        case "application/x-www-form-urlencoded": self = .form
        default: return nil
        }
    }
}
