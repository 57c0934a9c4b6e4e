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
