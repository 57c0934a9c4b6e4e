/// An enumeration of the interface that may grow: a value that this version does not know, as a newer daemon may send,
/// is read as `unknown`, and everything else of the reply can still be used.
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
