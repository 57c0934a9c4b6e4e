/// A member of a message that stays in the daemon: it is neither encoded nor decoded.
@propertyWrapper
package struct Unencoded<Value: Hashable & Sendable>: Hashable, Sendable {
    package var wrappedValue: Value?

    package init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }
}

extension Unencoded: Codable {
    package init(from decoder: any Decoder) throws { wrappedValue = nil }
    package func encode(to encoder: any Encoder) throws {}
}

// The synthesized coding methods of messages call these overloads, which omit the key.
extension KeyedEncodingContainer {
    mutating func encode<Value>(_ value: Unencoded<Value>, forKey key: Key) throws {}
}

extension KeyedDecodingContainer {
    func decode<Value>(_ type: Unencoded<Value>.Type, forKey key: Key) throws -> Unencoded<Value> {
        Unencoded(wrappedValue: nil)
    }
}
