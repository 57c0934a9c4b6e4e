import FoundationEssentials

/// The parameters of a call or of a reply: a JSON object, encoded once and decoded when somebody wants its values.
public struct VarlinkParameters: Hashable, Sendable {
    /// The JSON text of the object.
    public let json: [UInt8]

    /// No parameters: `{}`.
    public static let none = VarlinkParameters(json: Array("{}".utf8))

    /// Takes over text that is known to be a JSON object.
    init(json: [UInt8]) { self.json = json }

    /// Encodes a value, which must be one that becomes a JSON object.
    ///
    /// - Throws: `EncodingError` if it cannot be written as JSON, such as a number that is not finite.
    public init(encoding value: some Encodable) throws {
        let encoder = JSONEncoder()
        // Sorted, so that one value is one text: what programs compare and people read stays in its order.
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        json = Array(try encoder.encode(value))
        guard json.first == UInt8(ascii: "{") else {
            throw EncodingError.invalidValue(
                value, EncodingError.Context(codingPath: [], debugDescription: "parameters are a JSON object"))
        }
    }

    /// Decodes the parameters into a type.
    ///
    /// - Throws: `org.varlink.service.InvalidParameter` with the name of the parameter that did not fit.
    public func decode<Value: Decodable>(as type: Value.Type = Value.self) throws(VarlinkErrorReply) -> Value {
        do {
            return try JSONDecoder().decode(type, from: Data(json))
        } catch {
            // The decoder does not say where it met a number that is too large for it.
            let names = names
            throw .invalidParameter(
                (error as? DecodingError)?.parameter ?? (names.count == 1 ? names.first ?? "" : ""))
        }
    }

    /// Whether there is a parameter of this name, if only null.
    public func has(_ name: String) -> Bool { names.contains(name) }

    /// The names of the parameters.
    var names: [String] {
        // What was received has been scanned before, and what was encoded here is JSON.
        ((try? JSONScanner.members(of: json)) ?? []).map(\.name)
    }
}

extension DecodingError {
    /// The outermost member that did not fit, as Varlink's error wants it.
    fileprivate var parameter: String? {
        switch self {
        case .keyNotFound(let key, let context): (context.codingPath.first ?? key).stringValue
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            context.codingPath.first?.stringValue
        @unknown default: nil
        }
    }
}
