import Logging

/// One log event with all its values, redacted and bounded; the source of both formats.
struct LogRecord: Sendable {
    /// The maximum length of a value in bytes: enough for a sentence and an address, too little to flood a log.
    static let valueLimit = 4_096

    var level: Logger.Level
    var label: String
    /// A constant for each kind of event: variable parts are in ``values``.
    var message: String
    /// Sorted by key.
    var values: [(key: String, value: String)]
    /// The elements of the values that are lists. In the journal, each element is a field of the same name.
    var lists: [String: [String]] = [:]
    /// The MESSAGE_ID: 32 hexadecimal digits that identify an entry of the journal's catalogue.
    var messageID: String?
    var file: String
    var function: String
    var line: UInt

    /// The metadata key of the message id.
    static let messageIDKey = "message-id"

    /// Merges metadata in the order that swift-log requires: the handler's, then the provider's, then the call's own.
    init(
        _ event: LogEvent, label: String, metadata: Logger.Metadata, provided: Logger.Metadata,
        redactor: Redactor? = nil
    ) {
        let shown = { (text: String) in
            (redactor?.text(text) ?? Redaction.text(text)).truncated(toBytes: Self.valueLimit)
        }
        var merged = metadata
        merged.merge(provided) { _, new in new }
        merged.merge(event.metadata ?? [:]) { _, new in new }
        if let error = event.error { merged["error"] = .string(String(describing: error)) }
        messageID = merged.removeValue(forKey: Self.messageIDKey)?.description
        for case (let key, .array(let elements)) in merged { lists[key] = elements.map { shown($0.description) } }
        level = event.level
        self.label = label
        message = shown(event.message.description)
        values = merged.map { (key: $0.key, value: shown($0.value.description)) }.sorted { $0.key < $1.key }
        file = event.file
        function = event.function
        line = event.line
    }
}

extension Logger.Level {
    /// The priority of syslog(3). swift-log has no level between critical and emergency.
    var priority: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}
