/// A text that is no URL with places for values: an argument of a command, the value of a header field, a body.
///
/// Braces mean much in such texts: a place is only what looks like one and has a value, and all else stays as it is. No
/// value leaves its place: it ends no header field, no string of a JSON text and no field of a form.
package struct TextTemplate: Hashable, Sendable {
    /// What text it is.
    package enum Kind: Hashable, Sendable {
        /// Values stand in it as they are: one argument stays one.
        case argument
        /// The value of a header field: one line of ASCII (RFC 9110, 5.5).
        case header
        /// A JSON text (RFC 8259): escaped within quotation marks, and outside of them a number, `true`, `false` or `null`.
        case json
        /// Fields of a form, percent-encoded.
        case form
    }

    /// What is wrong with a value.
    package enum ValidationError: Error, Hashable, Sendable {
        /// A header field cannot hold it.
        case notInHeader(URLTemplate.Place)
        /// It stands outside of quotation marks, and is nothing that may.
        case notAJSONValue(URLTemplate.Place)
        case tooLong(limit: Int)
    }

    private enum Part: Hashable {
        case text(String)
        case place(URLTemplate.Place, inString: Bool)
    }

    /// The longest value of a header field with its values, in bytes: what servers commonly take for all fields together.
    package static let maximumHeaderLength = 8192
    /// The longest body with its values, in bytes: more than any question has.
    package static let maximumBodyLength = 1 << 20

    private let kind: Kind
    private let parts: [Part]

    package init(_ text: String, as kind: Kind) {
        self.kind = kind
        // Byte by byte, as whoever takes the text apart does: a quotation mark with an accent on it is one.
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
            if byte == UInt8(ascii: "{"), let (place, end) = Self.place(atStartOf: rest) {
                endLiteral()
                parts.append(.place(place, inString: inString))
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

    /// The place that begins with a brace, and where what follows it begins; nil: it looks like none. It reads no further than
    /// its name, so that many braces cost no more than as much other text.
    private static func place(
        atStartOf text: Substring.UTF8View
    ) -> (place: URLTemplate.Place, end: Substring.UTF8View.Index)? {
        let inner = text.dropFirst()
        let name = inner.prefix(while: URLTemplate.mayBeInPlace)
        guard name.endIndex < text.endIndex, text[name.endIndex] == UInt8(ascii: "}"),
            let place = URLTemplate.Place(named: Substring(name))
        else { return nil }
        return (place, text.index(after: name.endIndex))
    }

    /// What looks like a place, in its order; one that stands twice is there twice.
    package var places: [URLTemplate.Place] {
        parts.compactMap { if case .place(let place, _) = $0 { place } else { nil } }
    }

    /// The text with these values.
    package func filled(_ value: (URLTemplate.Place) -> String?) throws(ValidationError) -> String {
        var result: [UInt8] = []
        for part in parts {
            switch part {
            case .text(let text): result += text.utf8
            case .place(let place, let inString):
                guard let text = value(place) else {
                    result += "{\(place)}".utf8
                    continue
                }
                try append(text, at: place, inString: inString, to: &result)
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
        _ text: String, at place: URLTemplate.Place, inString: Bool, to result: inout [UInt8]
    ) throws(ValidationError) {
        switch kind {
        case .argument:
            result += text.utf8
        case .header:
            guard text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else { throw .notInHeader(place) }
            result += text.utf8
        case .json where inString:
            Self.appendEscaped(text, to: &result)
        case .json:
            guard Self.isJSONValue(text) else { throw .notAJSONValue(place) }
            result += text.utf8
        case .form:
            URLTemplate.append(text, to: &result)
        }
    }

    /// As it stands between the quotation marks of a JSON string (RFC 8259, 7).
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

    /// A number (RFC 8259, 6), `true`, `false` or `null`.
    static func isJSONValue(_ text: String) -> Bool {
        // By bytes: the value is an origin's, and a comparison of text may cost the square of its length.
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
    /// What values become in a body of this type; nil: that is not known here.
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
