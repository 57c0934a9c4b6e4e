/// A large value of which copies share one instance: a definition is in the configuration, with the supervisor and with
/// its runner, and changes in none of them. Equal by value; what is set is an instance of its own.
@propertyWrapper
package struct Shared<Value: Hashable & Sendable>: Hashable, Sendable {
    private final class Instance: Sendable {
        let value: Value

        init(_ value: Value) { self.value = value }
    }

    private var instance: Instance

    package init(wrappedValue: Value) { instance = Instance(wrappedValue) }

    package var wrappedValue: Value {
        get { instance.value }
        set { instance = Instance(newValue) }
    }

    package static func == (one: Self, other: Self) -> Bool {
        one.instance === other.instance || one.instance.value == other.instance.value
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(instance.value) }
}
