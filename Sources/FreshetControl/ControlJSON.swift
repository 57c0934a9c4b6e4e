import FoundationEssentials
import FreshetVarlink

/// The interface's types as JSON text, as they cross the socket.
package enum ControlJSON {
    /// One line of JSON, without a line feed; an empty object for a value that cannot be written, of which this
    /// interface has none.
    package static func text(of value: some Encodable) -> String {
        let json = (try? VarlinkParameters(encoding: value)) ?? .none
        return String(decoding: json.json, as: UTF8.self)
    }

    /// What such a text says; nil if it is none of this type.
    package static func value<Value: Decodable>(of text: String, as type: Value.Type) -> Value? {
        try? JSONDecoder().decode(type, from: Data(text.utf8))
    }
}
