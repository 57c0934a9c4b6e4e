/// A value that identifies a signal of a trigger: by its dynamic type and by equality, never by its hash alone.
///
/// The type is compared because `AnyHashable` considers `1 as Int` and `1 as UInt8` equal. It is the dynamic type,
/// because the static type differs in a generic function or for a variable of a superclass type.
struct Identifier: Hashable, Sendable {
    private let type: ObjectIdentifier
    private let value: any Hashable & Sendable

    init(_ value: some Hashable & Sendable) {
        type = ObjectIdentifier(Swift.type(of: value))
        self.value = value
    }

    /// False for values such as `Double.nan`, which a look-up can never find.
    var equalsItself: Bool { self == self }

    static func == (left: Identifier, right: Identifier) -> Bool {
        left.type == right.type && left.value.isEqual(to: right.value)
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        value.hash(into: &hasher)
    }
}

extension Equatable {
    fileprivate func isEqual(to other: any Equatable) -> Bool {
        guard let other = other as? Self else { return false }
        return self == other
    }
}
