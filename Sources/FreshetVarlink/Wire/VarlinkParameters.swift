import FoundationEssentials

/// The parameters of a call or of a reply: the text of a JSON object. Its values are decoded only when needed.
public struct VarlinkParameters: Hashable, Sendable {
    /// The JSON text of the object.
    public let json: [UInt8]

    /// No parameters: `{}`.
    public static let none = VarlinkParameters(json: Array("{}".utf8))

    /// Uses a text that is known to be a JSON object.
    package init(json: [UInt8]) { self.json = json }

    /// Encodes a value, which must encode as a JSON object.
    ///
    /// - Throws: `EncodingError` if JSON cannot represent the value, such as a number that is not finite.
    public init(encoding value: some Encodable) throws {
        let encoder = JSONEncoder()
        // Keys are sorted, so that equal values have the same text: programs compare it, and people read it.
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        json = Array(try encoder.encode(value))
        guard json.first == UInt8(ascii: "{") else {
            throw EncodingError.invalidValue(
                value, EncodingError.Context(codingPath: [], debugDescription: "parameters must be a JSON object"))
        }
    }

    /// Decodes the parameters into a type.
    ///
    /// - Throws: `org.varlink.service.InvalidParameter` with the name of the invalid parameter.
    public func decode<Value: Decodable>(as type: Value.Type = Value.self) throws(VarlinkErrorReply) -> Value {
        do {
            return try JSONDecoder().decode(type, from: Data(json))
        } catch {
            // The decoder does not report the parameter of a number that is too large.
            let names = names
            throw .invalidParameter(
                (error as? DecodingError)?.parameter ?? (names.count == 1 ? names.first ?? "" : ""))
        }
    }

    /// The value of a parameter that is text. This costs a tenth of decoding a type.
    ///
    /// - Throws: `org.varlink.service.InvalidParameter` with the name, if the parameter is absent or not text.
    public func string(_ name: String) throws(VarlinkErrorReply) -> String {
        if let single = singleText, json[single.name].elementsEqual(name.utf8) {
            return String(decoding: json[single.value], as: UTF8.self)
        }
        guard let member = members.first(where: { $0.name == name }),
            let text = JSONScanner.string(member.value, of: json)
        else { throw .invalidParameter(name) }
        return text
    }

    /// Whether there is a parameter with this name, even if its value is null.
    public func has(_ name: String) -> Bool { names.contains(name) }

    /// The first parameter that is not among these names.
    func stray(besides names: [String]) -> String? {
        if let single = singleText, names.contains(where: { json[single.name].elementsEqual($0.utf8) }) { return nil }
        return self.names.first { !names.contains($0) }
    }

    /// The places of the name and of the value, without quotes, of a single parameter that is text, as most calls have
    /// one; nil: the parameters have another form, or whitespace, escapes, or characters besides ASCII.
    private var singleText: (name: Range<Int>, value: Range<Int>)? {
        func plain(from start: Int) -> Range<Int>? {
            var end = start
            while end < json.count, json[end] != UInt8(ascii: "\"") {
                guard (0x20..<0x7F).contains(json[end]), json[end] != UInt8(ascii: "\\") else { return nil }
                end += 1
            }
            return start..<end
        }
        guard json.starts(with: "{\"".utf8), let name = plain(from: 2),
            json[name.upperBound...].starts(with: "\":\"".utf8), let value = plain(from: name.upperBound + 3),
            json[value.upperBound...].elementsEqual("\"}".utf8)
        else { return nil }
        return (name, value)
    }

    /// The names of the parameters.
    var names: [String] { members.map(\.name) }

    private var members: [JSONScanner.Member] {
        // Received text has been scanned before, and text that was encoded here is valid JSON.
        (try? JSONScanner.members(of: json)) ?? []
    }
}

extension DecodingError {
    /// The outermost member that could not be decoded, for Varlink's error `InvalidParameter`.
    fileprivate var parameter: String? {
        switch self {
        case .keyNotFound(let key, let context): (context.codingPath.first ?? key).stringValue
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            context.codingPath.first?.stringValue
        @unknown default: nil
        }
    }
}
