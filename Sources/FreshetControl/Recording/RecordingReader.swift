import FreshetVarlink

/// Reads recordings, which may come from other people: everything is bounded, and an error names the line.
package struct RecordingReader {
    /// A day of a busy daemon has some thousand lines of 300 bytes.
    package static let mostBytes = 64 << 20
    package static let mostLines = 200_000
    /// The longest line that `freshetctl record` writes has the signals of one pipeline, or a path of 4,096 bytes.
    package static let mostLineBytes = 64 << 10
    /// 31 days: the replay of a longer window would take minutes.
    package static let longestWindow: Int64 = 31 * 86_400_000_000
    /// A row's name is `file ` and a path (PATH_MAX is 4,096), or a match of D-Bus.
    private static let mostNameBytes = 8_192
    /// The year 2100, in microseconds since 1970: sums of times stay far from the largest number.
    private static let lastInstant: Int64 = 4_102_444_800_000_000
    /// The times of the events of one moment may differ a little from the order of their lines.
    private static let mostCauses = 1_000

    private let file: String
    private var line = 0

    private init(file: String) { self.file = file }

    /// - Parameters:
    ///   - bytes: the content of the file.
    ///   - file: its name, for errors.
    package static func read(_ bytes: [UInt8], file: String) throws(RecordingError) -> Recording {
        var reader = RecordingReader(file: file)
        return try reader.read(bytes)
    }

    private mutating func read(_ bytes: [UInt8]) throws(RecordingError) -> Recording {
        guard bytes.count <= Self.mostBytes else {
            throw RecordingError(
                file: file, "the file has \(bytes.count) bytes; a recording has at most \(Self.mostBytes)")
        }
        var recording: Recording?
        var start = 0
        while start < bytes.count {
            line += 1
            guard line <= Self.mostLines else { throw failure("a recording has at most \(Self.mostLines) lines") }
            let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
            guard end - start <= Self.mostLineBytes else {
                throw failure("the line has \(end - start) bytes; at most \(Self.mostLineBytes) are allowed")
            }
            let text = Array(bytes[start..<end])
            start = end + 1
            guard var known = recording else {
                recording = Recording(header: try header(text))
                continue
            }
            // One reference, so that the arrays grow in place.
            recording = nil
            try add(text, to: &known)
            recording = known
        }
        guard var recording else {
            throw RecordingError(file: file, "the file is empty; 'freshetctl record' writes recordings")
        }
        recording.events = Self.sorted(recording.events)
        return recording
    }

    /// Events of several threads may differ in their order from their times; the sort keeps the order of equal times.
    private static func sorted(_ events: [ControlEvent]) -> [ControlEvent] {
        events.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
    }

    private func header(_ text: [UInt8]) throws(RecordingError) -> Recording.Header {
        let (name, value) = try member(of: text)
        guard name == "recording", let header = ControlJSON.value(of: value, as: Recording.Header.self) else {
            throw failure("this is not a recording: the first line has to be {\"recording\":{\"version\":1,…}}")
        }
        guard header.version == Recording.version else {
            throw failure(
                "the recording has version \(header.version), and this program reads version \(Recording.version)")
        }
        guard (0...Self.lastInstant).contains(header.since), (0...Self.lastInstant).contains(header.until),
            header.since < header.until
        else { throw failure("'since' has to be before 'until', both in microseconds since 1970") }
        guard header.until - header.since <= Self.longestWindow else {
            throw failure("the recording is longer than 31 days; record a shorter time")
        }
        return header
    }

    private func add(_ text: [UInt8], to recording: inout Recording) throws(RecordingError) {
        let (name, value) = try member(of: text)
        switch name {
        case "pipeline": recording.pipelines.append(try pipeline(value))
        case "source":
            let source = try decoded(value, as: Recording.Source.self)
            try checkName(source.name)
            recording.sources.append(source)
        case "gap":
            let gap = try decoded(value, as: Recording.Gap.self)
            try check(gap.from, "from")
            try check(gap.to, "to")
            guard gap.from < gap.to else { throw failure("'from' has to be before 'to'") }
            recording.gaps.append(gap)
        case "event": recording.events.append(try event(value, recording.header))
        default:
            throw failure("unknown line '\(Self.printable(name))'; a line has a pipeline, a source, a gap or an event")
        }
    }

    private func pipeline(_ value: String) throws(RecordingError) -> Recording.Pipeline {
        let pipeline = try decoded(value, as: Recording.Pipeline.self)
        try checkPipeline(pipeline.name)
        for signal in pipeline.signals { try checkName(signal) }
        if let check = pipeline.lastCheck { try self.check(check, "lastCheck") }
        if let every = pipeline.everyUSec { try check(every, "everyUSec") }
        return pipeline
    }

    private func event(_ value: String, _ header: Recording.Header) throws(RecordingError) -> ControlEvent {
        let event = try decoded(value, as: ControlEvent.self)
        try check(event.at, "at")
        guard event.at <= header.until else { throw failure("the event is later than the end of the recording") }
        if let pipeline = event.pipeline { try checkPipeline(pipeline) }
        if let signal = event.signal { try checkName(signal) }
        if let source = event.source { try checkName(source) }
        if let detail = event.detail { try checkName(detail) }
        guard let run = event.run else { return event }
        try check(run.started, "started")
        if let duration = run.durationUSec, !(0...Self.longestWindow).contains(duration) {
            throw failure("'durationUSec' has to be at least 0 and at most 31 days")
        }
        if let requests = run.requests, !(0...1_000_000).contains(requests) {
            throw failure("'requests' has to be at least 0 and at most 1000000")
        }
        if let pause = run.retryAfterUSec { try check(pause, "retryAfterUSec") }
        guard run.causes.count <= Self.mostCauses else { throw failure("a run has at most \(Self.mostCauses) causes") }
        for cause in run.causes {
            try checkName(cause.signal)
            try check(cause.first, "first")
            try check(cause.last, "last")
            guard (0...1_000_000_000).contains(cause.count) else { throw failure("'count' is out of range") }
        }
        return event
    }

    // MARK: Values

    /// The only member of the line's object.
    private func member(of text: [UInt8]) throws(RecordingError) -> (name: String, value: String) {
        let members: [JSONScanner.Member]
        do throws(JSONScanner.SyntaxError) {
            members = try JSONScanner.members(of: text)
        } catch {
            throw failure("this is not a JSON object (byte \(error.offset + 1))")
        }
        guard members.count == 1, let member = members.first else {
            throw failure("a line has to be an object with one member")
        }
        return (member.name, String(decoding: text[member.value], as: UTF8.self))
    }

    private func decoded<Value: Decodable>(_ text: String, as type: Value.Type) throws(RecordingError) -> Value {
        guard let value = ControlJSON.value(of: text, as: type) else {
            throw failure("a member is missing, or its value has a wrong type")
        }
        return value
    }

    private func check(_ number: Int64, _ name: String) throws(RecordingError) {
        guard (0...Self.lastInstant).contains(number) else { throw failure("'\(name)' is out of range") }
    }

    private func checkPipeline(_ name: String) throws(RecordingError) {
        let isName = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        guard isName, (1...64).contains(name.utf8.count) else {
            throw failure("'\(Self.printable(name))' is not the name of a pipeline")
        }
    }

    /// Comparing a text costs the square of its longest sequence of combining characters, so that is limited.
    private func checkName(_ name: String) throws(RecordingError) {
        guard name.utf8.count <= Self.mostNameBytes else {
            throw failure("a text is longer than \(Self.mostNameBytes) bytes")
        }
        guard name.utf8.contains(where: { $0 >= 0x80 }) else { return }
        var marks = 0
        for scalar in name.unicodeScalars {
            let isMark = scalar.value >= 0x300 && scalar.properties.canonicalCombiningClass != .notReordered
            marks = isMark ? marks + 1 : 0
            // As many as the Stream-Safe Text Format allows (UAX #15).
            guard marks <= 30 else { throw failure("a text has more than 30 combining characters in a row") }
        }
    }

    /// At most 40 characters. Names are ASCII, so all others are replaced: they may control a terminal, or change the
    /// direction of the text.
    private static func printable(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.prefix(40).map { (0x20..<0x7F).contains($0.value) ? $0 : "?" }))
    }

    private func failure(_ message: String) -> RecordingError { RecordingError(file: file, line: line, message) }
}
