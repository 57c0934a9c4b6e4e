import Logging

/// The record as a line for people: a sentence, then the values that are not part of the sentence. A message may refer
/// to values by their keys, as in `error in the configuration: {error}`.
///
/// `jwks: changed, generation 3 (causes=network (2), timer; run=12)`
extension LogRecord {
    /// The sentence, without priority and line break. Control characters are escaped.
    var sentence: String {
        var rest = values
        var text = ""
        var pipeline = rest.take("pipeline")
        // An entry about several pipelines names the first of them in another field.
        if lists["pipeline"] != nil { pipeline = nil }
        if let pipeline { text += PlainText.escaping(pipeline) + ": " }
        text += Self.filled(message, taking: &rest, pipeline: pipeline)
        if let generation = rest.take("generation") { text += ", generation " + PlainText.escaping(generation) }
        // Skip the outcome: it is for programs, and the message contains it in words.
        _ = rest.take("outcome")
        // Skip the position: an error with a position begins with it.
        if rest.take("file") != nil { for key in ["line", "column"] { _ = rest.take(key) } }
        guard !rest.isEmpty else { return text }
        // The error and the causes come first; the rest in the order of the keys.
        let first = ["error", "causes", "signal"]
        let ordered = first.compactMap { key in rest.take(key).map { (key: key, value: $0) } } + rest
        return text + " (" + ordered.map { "\($0.key)=\(Self.quoted($0.value))" }.joined(separator: "; ") + ")"
    }

    /// The line with the prefix `<N>`, for a log collector.
    var collectedLine: String { "<\(level.priority)>\(sentence)\n" }

    /// The line for a terminal.
    ///
    /// - Parameter time: The wall-clock time to show, such as `14:03:07.250`.
    func terminalLine(time: String, colour: Bool) -> String {
        let name = level.shortName
        guard colour, let code = level.colour else { return "\(time) \(name) \(sentence)\n" }
        // SGR (ECMA-48, 8.3.117); the sentence itself contains no escape character.
        return "\(time) \u{1b}[\(code)m\(name)\u{1b}[0m \(sentence)\n"
    }

    /// The message with each `{key}` replaced by its value; those values are removed from the rest. Placeholders within
    /// a value are not replaced.
    ///
    /// - Parameter pipeline: The value of `{pipeline}`, which the line begins with, too.
    private static func filled(
        _ message: String, taking values: inout [(key: String, value: String)], pipeline: String?
    ) -> String {
        var text = ""
        var rest = message[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            let key = rest[rest.index(after: open)..<close]
            text += PlainText.escaping(String(rest[..<open]))
            let value = key == "pipeline" ? pipeline : values.take(String(key))
            text += value.map(PlainText.escaping) ?? "{\(key)}"
            rest = rest[rest.index(after: close)...]
        }
        return text + PlainText.escaping(String(rest))
    }

    /// A value, in quotation marks if it could be taken for several values, or for none.
    private static func quoted(_ value: String) -> String {
        let value = PlainText.escaping(value)
        let isPlain =
            !value.isEmpty && value.first != " " && value.last != " "
            && !value.utf8.contains { $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "=") }
        return isPlain
            ? value
            : "\""
                + value.split(separator: "\"", omittingEmptySubsequences: false)
                .joined(separator: "\\\"") + "\""
    }
}

extension [(key: String, value: String)] {
    fileprivate mutating func take(_ key: String) -> String? {
        firstIndex { $0.key == key }.map { remove(at: $0).value }
    }
}

extension Logger.Level {
    /// Five letters, so that lines are aligned.
    fileprivate var shortName: String {
        switch self {
        case .trace: "trace"
        case .debug: "debug"
        case .info: "info "
        case .notice: "note "
        case .warning: "warn "
        case .error: "error"
        case .critical: "crit "
        }
    }

    /// The colours of journalctl(1): bold for notices, yellow for warnings, red for errors, grey for debug.
    fileprivate var colour: String? {
        switch self {
        case .trace, .debug: "90"
        case .info: nil
        case .notice: "1"
        case .warning: "33"
        case .error, .critical: "31"
        }
    }
}
