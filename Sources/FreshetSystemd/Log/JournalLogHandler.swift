import CSystemd
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
public struct JournalLogHandler: LogHandler {
    public var metadata: Logger.Metadata = [:]
    public var metadataProvider: Logger.MetadataProvider?
    private let label: String
    private let identifier: String
    private let destination: LogDestination
    private let threshold: LogThreshold
    private let redactor: Redactor?
    private var ownLevel: Logger.Level?

    /// - Parameters:
    ///   - label: the logger's label.
    ///   - identifier: the program's name as the journal shows it (SYSLOG_IDENTIFIER).
    ///   - destination: where lines go.
    ///   - threshold: the level for all loggers that have none of their own.
    ///   - metadataProvider: adds values to each line.
    ///   - redactor: knows secrets that no message may hold.
    public init(
        label: String, identifier: String, destination: LogDestination, threshold: LogThreshold,
        metadataProvider: Logger.MetadataProvider? = nil, redactor: Redactor? = nil
    ) {
        self.label = label
        self.identifier = identifier
        self.destination = destination
        self.threshold = threshold
        self.metadataProvider = metadataProvider
        self.redactor = redactor
    }

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
        case .journal: Journal.send(record.journalFields(identifier: identifier))
        case .lines: StandardError.write(record.collectedLine)
        case .terminal(let colour): StandardError.write(record.terminalLine(time: WallClock.now, colour: colour))
        }
    }
}

private enum Journal {
    /// Hands an entry to journald. Each field is `NAME=value`; a value may hold any byte.
    static func send(_ fields: [String]) {
        var vectors: [iovec] = []
        vectors.reserveCapacity(fields.count)
        // One buffer for all: the vectors point into it, so it must not move before the call has ended.
        var bytes: [UInt8] = []
        bytes.reserveCapacity(fields.reduce(0) { $0 + $1.utf8.count })
        for field in fields { bytes += field.utf8 }
        bytes.withUnsafeMutableBytes { buffer in
            guard var start = buffer.baseAddress else { return }
            for field in fields {
                vectors.append(iovec(iov_base: start, iov_len: field.utf8.count))
                start += field.utf8.count
            }
            _ = sd_journal_sendv(vectors, Int32(vectors.count))
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
