import CJQ
import FreshetHelper

/// The owner of one libjq value. libjq counts references manually: nearly every libjq function consumes the values that
/// it gets.
struct JQValue: ~Copyable {
    private let raw: jv

    /// Takes ownership of a value.
    init(_ raw: jv) { self.raw = raw }

    /// Makes a string of these bytes, which must be UTF-8.
    init(text: ArraySlice<UInt8>) {
        raw = text.withUnsafeBytes { jv_string_sized($0.bindMemory(to: CChar.self).baseAddress, Int32($0.count)) }
    }

    deinit { jv_free(raw) }

    /// An additional reference, for a callee that consumes it.
    var consumed: jv { jv_copy(raw) }

    var kind: jv_kind { jv_get_kind(raw) }
    var isValid: Bool { kind != JV_KIND_INVALID }

    /// Whether the value is neither `false` nor `null`: jq's definition of a true condition.
    var isTruthy: Bool { isValid && kind != JV_KIND_FALSE && kind != JV_KIND_NULL }

    /// The error message of an invalid value; nil without a message, as at the normal end of outputs.
    var error: String? {
        guard !isValid, jv_invalid_has_msg(consumed) != 0 else { return nil }
        return JQValue(jv_invalid_get_msg(consumed)).text
    }

    /// A string's content, anything else as JSON.
    var text: String {
        kind == JV_KIND_STRING ? string : JQValue(jv_dump_string(consumed, 0)).string
    }

    /// Appends the value as compact JSON and a newline. If that exceeds the limit, returns false and appends nothing.
    func dump(to output: inout [UInt8], limit: UInt64) -> Bool {
        let text = JQValue(jv_dump_string(consumed, 0))
        let length = Int(jv_string_length_bytes(text.consumed))
        guard UInt64(output.count) + UInt64(length) + 1 <= limit else { return false }
        output.append(contentsOf: UnsafeRawBufferPointer(start: jv_string_value(text.raw), count: length))
        output.append(UInt8(ascii: "\n"))
        return true
    }

    /// Appends a string's content, or anything else as compact JSON, after its length (4 bytes, little-endian). If that
    /// exceeds the limit, returns false and appends nothing.
    func content(to output: inout [UInt8], limit: UInt64) -> Bool {
        let text = JQValue(kind == JV_KIND_STRING ? consumed : jv_dump_string(consumed, 0))
        let length = Int(jv_string_length_bytes(text.consumed))
        guard UInt64(output.count) + UInt64(length) + 4 <= limit, let size = UInt32(exactly: length) else {
            return false
        }
        output.appendNumber(size)
        output.append(contentsOf: UnsafeRawBufferPointer(start: jv_string_value(text.raw), count: length))
        return true
    }

    /// The content of a string; the value must be a string.
    private var string: String { String(cString: jv_string_value(raw)) }
}
