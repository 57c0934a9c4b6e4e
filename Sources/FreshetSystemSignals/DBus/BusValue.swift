import CSystemd

/// A value in a message: the types of the D-Bus specification, "Type System". Descriptors are not negotiated, so there
/// are none.
public indirect enum BusValue: Hashable, Sendable {
    case byte(UInt8)
    case boolean(Bool)
    case int16(Int16), uint16(UInt16), int32(Int32), uint32(UInt32), int64(Int64), uint64(UInt64)
    case double(Double)
    case string(String), objectPath(String), signature(String)
    case array([BusValue])
    case structure([BusValue])
    /// One entry of a dictionary; a dictionary is an array of entries.
    case entry(key: BusValue, value: BusValue)
    case variant(BusValue)
}

extension BusValue {
    /// The entries of a dictionary of variants by name, `a{sv}`; none if the value is of another type.
    static func variants(_ value: BusValue?) -> [String: BusValue] {
        guard case .array(let entries)? = value else { return [:] }
        var values: [String: BusValue] = [:]
        for case .entry(.string(let key), .variant(let value)) in entries { values[key] = value }
        return values
    }

    /// The signature of the value's type; nil: an empty array, whose type is unknown, or an empty structure, for which a
    /// bus closes the connection.
    private var typeSignature: String? {
        func joined(_ values: [BusValue]) -> String? {
            values.reduce("") { signature, value in signature.flatMap { all in value.typeSignature.map { all + $0 } } }
        }
        return switch self {
        case .byte: "y"
        case .boolean: "b"
        case .int16: "n"
        case .uint16: "q"
        case .int32: "i"
        case .uint32: "u"
        case .int64: "x"
        case .uint64: "t"
        case .double: "d"
        case .string: "s"
        case .objectPath: "o"
        case .signature: "g"
        case .array(let values): values.first?.typeSignature.map { "a\($0)" }
        case .structure(let values): values.isEmpty ? nil : joined(values).map { "(\($0))" }
        case .entry(let key, let value): joined([key, value]).map { "{\($0)}" }
        case .variant: "v"
        }
    }

    /// Appends the value to a message; returns false for an empty array or structure, for values that make no valid
    /// message, or if there is no memory.
    func append(to message: OpaquePointer) -> Bool {
        func add(_ type: Unicode.Scalar, _ value: some BitwiseCopyable) -> Bool {
            withUnsafePointer(to: value) { sd_bus_message_append_basic(message, CChar(type.value), $0) >= 0 }
        }
        func add(_ type: Unicode.Scalar, _ text: String) -> Bool {
            text.withCString { sd_bus_message_append_basic(message, CChar(type.value), $0) >= 0 }
        }
        func add(_ type: Unicode.Scalar, _ signature: String?, _ values: [BusValue]) -> Bool {
            guard let signature, sd_bus_message_open_container(message, CChar(type.value), signature) >= 0 else {
                return false
            }
            return values.allSatisfy { $0.append(to: message) } && sd_bus_message_close_container(message) >= 0
        }
        return switch self {
        case .byte(let value): add("y", value)
        case .boolean(let value): add("b", Int32(value ? 1 : 0))  // sd-bus reads an int
        case .int16(let value): add("n", value)
        case .uint16(let value): add("q", value)
        case .int32(let value): add("i", value)
        case .uint32(let value): add("u", value)
        case .int64(let value): add("x", value)
        case .uint64(let value): add("t", value)
        case .double(let value): add("d", value)
        case .string(let value): add("s", value)
        case .objectPath(let value): add("o", value)
        case .signature(let value): add("g", value)
        case .array(let values): add("a", values.first?.typeSignature, values)
        case .structure(let values): add("r", typeSignature.map { String($0.dropFirst().dropLast()) }, values)
        case .entry(let key, let value):
            add("e", typeSignature.map { String($0.dropFirst().dropLast()) }, [key, value])
        case .variant(let value): add("v", value.typeSignature, [value])
        }
    }
}

/// Reads values from a message, from its read position on, up to a limit.
struct BusValueReader {
    /// The maximum number of values of one message, including nested ones: a list of all sessions that logind allows
    /// (SessionsMax= in logind.conf(5), 8,192) has six for each session.
    static let maximumValues = 65_536
    /// The maximum number of bytes of text of one message.
    static let maximumText = 1_048_576

    private let message: OpaquePointer
    private var valuesLeft = maximumValues
    private var textLeft = maximumText

    init(_ message: OpaquePointer) { self.message = message }

    /// Reads the rest of the message, or of the entered container; nil if it is malformed or too large.
    mutating func readAll() -> [BusValue]? {
        var values: [BusValue] = []
        while true {
            var type: CChar = 0
            var contents: UnsafePointer<CChar>?
            let found = sd_bus_message_peek_type(message, &type, &contents)
            if found == 0 { return values }
            guard found > 0, valuesLeft > 0 else { return nil }
            valuesLeft -= 1
            guard let value = readOne(type, contents.map { String(cString: $0) }) else { return nil }
            values.append(value)
        }
    }

    private mutating func readOne(_ type: CChar, _ contents: String?) -> BusValue? {
        switch UnicodeScalar(UInt8(truncatingIfNeeded: type)) {
        case "y": read(type, UInt8(0)).map(BusValue.byte)
        case "b": read(type, Int32(0)).map { .boolean($0 != 0) }
        case "n": read(type, Int16(0)).map(BusValue.int16)
        case "q": read(type, UInt16(0)).map(BusValue.uint16)
        case "i": read(type, Int32(0)).map(BusValue.int32)
        case "u": read(type, UInt32(0)).map(BusValue.uint32)
        case "x": read(type, Int64(0)).map(BusValue.int64)
        case "t": read(type, UInt64(0)).map(BusValue.uint64)
        case "d": read(type, Double(0)).map(BusValue.double)
        case "s": readText(type).map(BusValue.string)
        case "o": readText(type).map(BusValue.objectPath)
        case "g": readText(type).map(BusValue.signature)
        case "a": readContainer(type, contents).map(BusValue.array)
        case "r": readContainer(type, contents).map(BusValue.structure)
        case "v": readContainer(type, contents).flatMap { $0.first }.map(BusValue.variant)
        case "e":
            readContainer(type, contents).flatMap { $0.count == 2 ? .entry(key: $0[0], value: $0[1]) : nil }
        default: nil
        }
    }

    private func read<Value: BitwiseCopyable>(_ type: CChar, _ zero: Value) -> Value? {
        var value = zero
        return sd_bus_message_read_basic(message, type, &value) > 0 ? value : nil
    }

    private mutating func readText(_ type: CChar) -> String? {
        // The text belongs to the message, so copy it.
        var text: UnsafePointer<CChar>?
        guard sd_bus_message_read_basic(message, type, &text) > 0, let text else { return nil }
        let copy = String(cString: text)
        textLeft -= copy.utf8.count
        return textLeft >= 0 ? copy : nil
    }

    private mutating func readContainer(_ type: CChar, _ contents: String?) -> [BusValue]? {
        guard sd_bus_message_enter_container(message, type, contents) > 0, let values = readAll(),
            sd_bus_message_exit_container(message) >= 0
        else { return nil }
        return values
    }
}
