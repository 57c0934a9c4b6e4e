import Glibc
public import Logging

/// A log handler for swift-log that writes to the journal, or to standard error if there is no journal.
///
/// ```swift
/// let threshold = LogThreshold()
/// let destination = LogDestination.detect(environment: environment)
/// LoggingSystem.bootstrap { label in
///     JournalLogHandler(label: label, identifier: "freshetd", destination: destination, threshold: threshold)
/// }
/// logger.info("changed", metadata: ["pipeline": "jwks", "generation": "3", "causes": "network (2), timer"])
/// // on a terminal: 14:03:07.250 info  jwks: changed, generation 3 (causes=network (2), timer)
/// // in the journal: MESSAGE=changed PRIORITY=6 FRESHET_PIPELINE=jwks FRESHET_GENERATION=3 FRESHET_CAUSES=…
/// ```
///
/// Messages are constants; variable values are metadata. The metadata key `message-id` becomes `MESSAGE_ID`. A list
/// becomes several fields of the same name; lines for people leave out a list with the key `pipeline`. Secrets in
/// URLs are redacted (``Redaction``), values longer than 4 KiB are truncated, and control characters are escaped in
/// lines for people. An event that cannot be written (a full pipe, no journal) is dropped: a daemon does not fail
/// because of its log. Logging never waits for the journal: entries that the journal does not accept immediately are
/// kept, up to 4 MiB; further ones are counted.
public struct JournalLogHandler: LogHandler {
    public var metadata: Logger.Metadata = [:]
    public var metadataProvider: Logger.MetadataProvider?
    private let label: String
    private let identifier: String
    private let destination: LogDestination
    private let threshold: LogThreshold
    private let journal: JournalSocket?
    private let redactor: Redactor?
    private var ownLevel: Logger.Level?

    /// The entry that is logged when entries were lost on their way to the journal.
    public struct LostEntriesReport: Hashable, Sendable {
        /// The message; `{count}` is replaced by the number of lost entries.
        public var message: String
        /// The MESSAGE_ID of the entry.
        public var messageID: String?

        public init(message: String = "{count} messages for the journal were lost", messageID: String? = nil) {
            self.message = message
            self.messageID = messageID
        }
    }

    /// - Parameters:
    ///   - label: The logger's label.
    ///   - identifier: The program's name in the journal (SYSLOG_IDENTIFIER).
    ///   - destination: Where lines go.
    ///   - threshold: The level for all loggers that have no level of their own.
    ///   - loss: The entry that is logged when the journal accepted nothing for so long that entries were lost.
    ///   - metadataProvider: Adds values to each line.
    ///   - redactor: Removes secrets from messages.
    public init(
        label: String, identifier: String, destination: LogDestination, threshold: LogThreshold,
        loss: LostEntriesReport = LostEntriesReport(), metadataProvider: Logger.MetadataProvider? = nil,
        redactor: Redactor? = nil
    ) {
        self.label = label
        self.identifier = identifier
        self.destination = destination
        self.threshold = threshold
        self.metadataProvider = metadataProvider
        self.redactor = redactor
        guard destination == .journal else {
            journal = nil
            return
        }
        journal = JournalSocket { lost in
            var metadata: Logger.Metadata = ["count": .stringConvertible(lost)]
            if let id = loss.messageID { metadata[LogRecord.messageIDKey] = .string(id) }
            let event = LogEvent(
                level: .warning, message: "\(loss.message)", metadata: metadata, source: nil, file: #fileID,
                function: #function, line: #line)
            return LogRecord(event, label: label, metadata: [:], provided: [:]).journalFields(identifier: identifier)
        }
    }

    /// Waits until all entries have reached the journal, at most this long: for a program that is about to end.
    public func flush(for limit: Duration) { journal?.flush(for: limit) }

    /// The logger's own level if it is set, otherwise the threshold's.
    public var logLevel: Logger.Level {
        get { ownLevel ?? threshold.level }
        set { ownLevel = newValue }
    }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        let record = LogRecord(
            event, label: label, metadata: metadata, provided: metadataProvider?.get() ?? [:], redactor: redactor)
        switch destination {
        case .journal: journal?.send(record.journalFields(identifier: identifier))
        case .lines: StandardError.write(record.collectedLine)
        case .terminal(let colour): StandardError.write(record.terminalLine(time: WallClock.now, colour: colour))
        }
    }
}

private enum StandardError {
    /// Writes a line with one `write(2)`, so that lines of several threads do not mix.
    static func write(_ line: String) {
        var line = line
        line.withUTF8 { bytes in
            guard var start = bytes.baseAddress else { return }
            var left = bytes.count
            while left > 0 {
                let count = Glibc.write(STDERR_FILENO, start, left)
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { return }
                start += count
                left -= count
            }
        }
    }
}

private enum WallClock {
    /// The local time of day to the millisecond.
    static var now: String {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        var parts = tm()
        localtime_r(&time.tv_sec, &parts)
        return [
            padded(Int(parts.tm_hour), 2), ":", padded(Int(parts.tm_min), 2), ":", padded(Int(parts.tm_sec), 2), ".",
            padded(time.tv_nsec / 1_000_000, 3),
        ].joined()
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
