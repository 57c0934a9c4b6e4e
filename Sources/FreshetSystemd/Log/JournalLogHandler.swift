import Glibc
public import Logging

/// A handler for swift-log that speaks to the journal where there is one, and to people where there is none.
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
/// Messages are constants; what varies is metadata. The metadata key `message-id` becomes `MESSAGE_ID`. URLs lose
/// their secrets (``Redaction``), values longer than 4 KiB their end; on lines for people, control characters are
/// escaped. An event that cannot be written (a full pipe, no journal) is dropped: a daemon does not fail for its log.
/// Nobody waits for the journal: what it does not take at once is kept for it, up to 4 MiB, then counted.
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

    /// What is said when entries were lost on their way to the journal.
    public struct LostEntriesReport: Hashable, Sendable {
        /// Its words; `{count}` is replaced by how many.
        public var message: String
        /// Its MESSAGE_ID.
        public var messageID: String?

        public init(message: String = "{count} messages for the journal were lost", messageID: String? = nil) {
            self.message = message
            self.messageID = messageID
        }
    }

    /// - Parameters:
    ///   - label: the logger's label.
    ///   - identifier: the program's name as the journal shows it (SYSLOG_IDENTIFIER).
    ///   - destination: where lines go.
    ///   - threshold: the level for all loggers that have none of their own.
    ///   - loss: what is said when the journal took nothing for so long that entries were lost.
    ///   - metadataProvider: adds values to each line.
    ///   - redactor: knows secrets that no message may hold.
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

    /// Waits until what was logged has reached the journal, at most so long: for a program that is about to end.
    public func flush(for limit: Duration) { journal?.flush(for: limit) }

    /// The logger's own level once it is set, else the threshold's.
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
    /// One `write(2)` for a line, so that lines of several threads do not mix.
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
