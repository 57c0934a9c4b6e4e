public import FreshetEventLoop

/// A connection to a message bus.
public final class BusConnection: Sendable {
    /// Which bus.
    public enum Bus: Hashable, Sendable {
        case system, session
    }

    /// Begins to connect; it always succeeds.
    public init(_ loop: EventLoop, _ bus: Bus = .system, address: String? = nil) {}
}
