import CSystemd
import Glibc

/// A signal of a bus. It is valid on the loop's thread while the handler runs; copy the values that you need later.
///
/// The body is only read when a property needs it, so the size of a message has no further cost.
public final class BusMessage {
    private let message: OpaquePointer

    /// - Parameter message: This object takes its own reference.
    init(_ message: OpaquePointer) {
        self.message = message
        sd_bus_message_ref(message)
    }

    deinit { sd_bus_message_unref(message) }

    /// The unique name of the connection that sent it, as the bus wrote it.
    public var sender: String { Self.text(sd_bus_message_get_sender(message)) }
    public var path: String { Self.text(sd_bus_message_get_path(message)) }
    public var interface: String { Self.text(sd_bus_message_get_interface(message)) }
    public var member: String { Self.text(sd_bus_message_get_member(message)) }
    /// The types of the arguments, such as `sb`.
    public var signature: String { Self.text(sd_bus_message_get_signature(message, 1)) }

    /// The arguments; nil if there are more than 65,536 values or 1 MiB of text in them.
    public var arguments: [BusValue]? {
        guard sd_bus_message_rewind(message, 1) >= 0 else { return nil }
        var reader = BusValueReader(message)
        return reader.readAll()
    }

    /// The first argument, if it is a string.
    var firstArgument: String? {
        guard sd_bus_message_rewind(message, 1) >= 0 else { return nil }
        var text: UnsafePointer<CChar>?
        let found = sd_bus_message_read_basic(message, CChar(UInt8(ascii: "s")), &text)
        return found > 0 ? text.map { String(cString: $0) } : nil
    }

    /// Whether the signal agrees with a match, except for the sender.
    func agrees(with match: BusMatch) -> Bool {
        if let wanted = match.member, !Self.equal(sd_bus_message_get_member(message), wanted) { return false }
        if let wanted = match.interface, !Self.equal(sd_bus_message_get_interface(message), wanted) { return false }
        if match.path != nil || match.pathNamespace != nil, !match.accepts(path: path) { return false }
        if let wanted = match.firstArgument, firstArgument != wanted { return false }
        return true
    }

    private static func text(_ pointer: UnsafePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }

    /// Compares without a copy.
    private static func equal(_ pointer: UnsafePointer<CChar>?, _ text: String) -> Bool {
        guard let pointer else { return false }
        return text.withCString { strcmp(pointer, $0) == 0 }
    }
}
