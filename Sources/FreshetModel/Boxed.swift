/// Stores a large, mostly absent value outside of its owner: an absent value takes one word.
@propertyWrapper
@usableFromInline
package struct Boxed<Value: Sendable>: Sendable {
    @usableFromInline
    indirect enum Box: Sendable {
        case value(Value)
    }

    @usableFromInline
    var box: Box?

    @inlinable
    package init(wrappedValue: Value?) {
        box = wrappedValue.map { .value($0) }
    }

    @inlinable
    package var wrappedValue: Value? {
        get {
            switch box {
            case .value(let value): value
            case nil: nil
            }
        }
        set { box = newValue.map { .value($0) } }
    }
}

extension Boxed.Box: Equatable where Value: Equatable {}
extension Boxed.Box: Hashable where Value: Hashable {}
extension Boxed: Equatable where Value: Equatable {}
extension Boxed: Hashable where Value: Hashable {}

/// Stores values that most owners never change from their defaults: together they take one word until one of them is
/// changed, and again when all have their defaults. So equal values are stored equally.
@propertyWrapper
@usableFromInline
package struct Rarely<Values: RareValues>: Hashable, Sendable {
    /// Nil if all have their defaults.
    @usableFromInline
    var changed: Boxed<Values>

    @inlinable
    package init(wrappedValue: Values) {
        changed = Boxed(wrappedValue: wrappedValue == Values() ? nil : wrappedValue)
    }

    @inlinable
    package var wrappedValue: Values {
        get { changed.wrappedValue ?? Values() }
        set {
            // Most assignments change nothing, and then the box stays.
            guard newValue != wrappedValue else { return }
            changed.wrappedValue = newValue == Values() ? nil : newValue
        }
    }
}

/// Values of which each has a default.
@usableFromInline
package protocol RareValues: Hashable, Sendable {
    /// All defaults.
    init()
}
