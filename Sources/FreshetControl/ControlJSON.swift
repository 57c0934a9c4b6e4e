import FoundationEssentials
import FreshetVarlink

/// Encodes and decodes the interface's types as JSON text, as in Varlink messages.
package enum ControlJSON {
    /// One line of JSON without a line feed; an empty object for a value that cannot be encoded, which the types of
    /// this interface do not allow.
    package static func text(of value: some Encodable) -> String {
        let json = (try? VarlinkParameters(encoding: value)) ?? .none
        return String(decoding: json.json, as: UTF8.self)
    }

    /// The value of a JSON text; nil if the text does not have this type.
    package static func value<Value: Decodable>(of text: String, as type: Value.Type) -> Value? {
        try? JSONDecoder().decode(type, from: Data(text.utf8))
    }
}
