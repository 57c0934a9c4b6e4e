/// The record as journal fields (systemd.journal-fields(7)). `MESSAGE` is the sentence for people, including values.
/// The constant parts, for searching and counting, are `MESSAGE_ID` and `FRESHET_MESSAGE`. Each value has its own
/// field; a list has a field of the same name for each element, so that `journalctl FRESHET_PIPELINE=NAME` finds an entry
/// about several pipelines by the name of each.
extension LogRecord {
    /// journald refuses fields with longer names.
    static let fieldNameLimit = 64

    /// Each field as `NAME=value`.
    ///
    /// - Parameter identifier: SYSLOG_IDENTIFIER, the program's name.
    func journalFields(identifier: String) -> [String] {
        var fields = [
            "MESSAGE=\(sentence)",
            "FRESHET_MESSAGE=\(message)",
            "PRIORITY=\(level.priority)",
            "SYSLOG_IDENTIFIER=\(identifier)",
            "FRESHET_LOGGER=\(label)",
            "CODE_FILE=\(file)",
            "CODE_LINE=\(line)",
            "CODE_FUNC=\(function)",
        ]
        if let messageID { fields.append("MESSAGE_ID=\(messageID)") }
        for (key, value) in values {
            let name = Self.fieldName(for: key)
            fields += (lists[key] ?? [value]).map { "\(name)=\($0)" }
        }
        return fields
    }

    /// The journal field of a key: `pipeline` becomes `FRESHET_PIPELINE`, `retry-after` becomes `FRESHET_RETRY_AFTER`.
    /// A name may contain only A to Z, 0 to 9 and `_`.
    static func fieldName(for key: String) -> String {
        let name = key.utf8.map { byte -> Character in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"): Character(Unicode.Scalar(byte - 32))
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                Character(Unicode.Scalar(byte))
            default: "_"
            }
        }
        return String(("FRESHET_" + String(name)).prefix(fieldNameLimit))
    }
}
