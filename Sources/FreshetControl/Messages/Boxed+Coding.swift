package import FreshetModel

/// A boxed member of a message is encoded like an optional one: without a value, its key is absent.
extension Boxed: Codable where Value: Codable {
    package init(from decoder: any Decoder) throws { self.init(wrappedValue: try Value?(from: decoder)) }
    package func encode(to encoder: any Encoder) throws { try wrappedValue.encode(to: encoder) }
}

// The synthesized coding methods of messages call these overloads.
extension KeyedEncodingContainer {
    mutating func encode<Value: Codable>(_ value: Boxed<Value>, forKey key: Key) throws {
        try encodeIfPresent(value.wrappedValue, forKey: key)
    }
}

extension KeyedDecodingContainer {
    func decode<Value: Codable>(_ type: Boxed<Value>.Type, forKey key: Key) throws -> Boxed<Value> {
        Boxed(wrappedValue: try decodeIfPresent(Value.self, forKey: key))
    }
}
