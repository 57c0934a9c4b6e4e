import CJQ

/// The owner of one value of libjq's, which counts references by hand: nearly every function of its consumes what it is
/// given.
struct JQValue: ~Copyable {
    private let raw: jv

    /// Takes a value over.
    init(_ raw: jv) { self.raw = raw }

    /// A string of these bytes, which are UTF-8.
    init(text: ArraySlice<UInt8>) {
        raw = text.withUnsafeBytes { jv_string_sized($0.bindMemory(to: CChar.self).baseAddress, Int32($0.count)) }
    }

    deinit { jv_free(raw) }

    /// A reference of the callee's own.
    var consumed: jv { jv_copy(raw) }

    var kind: jv_kind { jv_get_kind(raw) }
    var isValid: Bool { kind != JV_KIND_INVALID }

    /// Neither `false` nor `null`, as jq's own conditions see it.
    var isTruthy: Bool { isValid && kind != JV_KIND_FALSE && kind != JV_KIND_NULL }

    /// What an invalid value says about itself; nil if there is nothing, as at the plain end of outputs.
    var error: String? {
        guard !isValid, jv_invalid_has_msg(consumed) != 0 else { return nil }
        return JQValue(jv_invalid_get_msg(consumed)).words
    }

    /// A string as it is, anything else as JSON.
    var words: String {
        kind == JV_KIND_STRING ? string : JQValue(jv_dump_string(consumed, 0)).string
    }

    /// Appends the value as compact JSON and a newline; false, and nothing appended, if that passes the limit.
    func dump(to output: inout [UInt8], limit: UInt64) -> Bool {
        let text = JQValue(jv_dump_string(consumed, 0))
        let length = Int(jv_string_length_bytes(text.consumed))
        guard UInt64(output.count) + UInt64(length) + 1 <= limit else { return false }
        output.append(contentsOf: UnsafeRawBufferPointer(start: jv_string_value(text.raw), count: length))
        output.append(UInt8(ascii: "\n"))
        return true
    }

    /// Appends a string's content, or anything else as compact JSON, with its length before it (4 bytes,
    /// little-endian); false, and nothing appended, if that passes the limit.
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

    /// The content of what is a string.
    private var string: String { String(cString: jv_string_value(raw)) }
}
