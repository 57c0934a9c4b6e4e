/// An enumeration of the interface that may grow. A value that only a newer daemon knows is read as `unknown`, so that
/// a client can still use the rest of the reply.
package protocol OpenEnumeration: RawRepresentable, Codable where RawValue == String {
    /// Never sent; its raw value is not one of the interface.
    static var unknown: Self { get }
}

extension OpenEnumeration {
    package init(from decoder: any Decoder) throws {
        self = Self(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .unknown
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}
