/// Stores a large, mostly absent value outside of its owner: an absent value takes one word.
@propertyWrapper
struct Boxed<Value: Sendable>: Sendable {
    private indirect enum Box {
        case value(Value)
    }

    private var box: Box?

    init(wrappedValue: Value?) {
        box = wrappedValue.map { .value($0) }
    }

    var wrappedValue: Value? {
        get {
            switch box {
            case .value(let value): value
            case nil: nil
            }
        }
        set { box = newValue.map { .value($0) } }
    }
}
