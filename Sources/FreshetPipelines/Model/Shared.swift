/// A large value whose copies share one instance: the configuration, the host and the runner of a pipeline hold
/// the same definition, and none of them changes it. Instances are compared by value; setting the value makes a new
/// instance.
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

    /// The wrapper itself, for another property that shares the instance.
    package var projectedValue: Self { self }

    /// Uses the instance of `other` if the values are equal, so that only one is kept.
    package mutating func share(with other: Self) {
        if instance !== other.instance, instance.value == other.instance.value { instance = other.instance }
    }

    /// Whether there is one instance for both.
    package func isSame(as other: Self) -> Bool { instance === other.instance }

    package static func == (one: Self, other: Self) -> Bool {
        one.instance === other.instance || one.instance.value == other.instance.value
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(instance.value) }
}
