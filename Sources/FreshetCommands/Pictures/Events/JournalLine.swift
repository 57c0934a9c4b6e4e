import FoundationEssentials
import FreshetControl

/// A line of the daemon's journal, as `journalctl --output=json` prints it.
struct JournalLine: Hashable, Sendable {
    /// The messages of docs/journal.md that pictures show.
    enum Message: String, CaseIterable, Hashable, Sendable {
        case ready = "ca5cf8103cb9486cb2151383aeadd847"
        case stopped = "2f145c47cc92434b9359d88f8a193d18"
        case changed = "66f71c85b7f24bbaaa0c0a4d5d7ec04a"
        case unchanged = "533d72ca7a914d4f9b91600b7869027c"
        case failed = "257972dd68734f17ae756b6dc5ace42b"
        case branchesFailed = "65eb441326b94b45a6a73beca22a34fe"
        case loadMoreFailed = "441e61a3b08c4f2089c614658befcc63"
        case fired = "f1cda6ad33d949f785de07c4dde6752f"
        case firedMore = "d6c48a9dd9f14ab08d3bb2328c8f9b3c"
        case waiting = "dc89e0303b544fc889aa97e6daadf9e5"
        case runStarted = "770a8eb3cb58429fb1ef2435bb679081"
        case runCutShort = "43793088594c48dca79e5c842d41044d"
        case networkSettling = "2494ec07255b40cda8a69bf5ae6d1c9a"
        case reloaded = "369e7ef8dfd446099e6530e3fc46ab35"
        case woke = "38988b34e4ce4065b5ede383ced9bfa8"
        case network = "6400bcdb36024f2ebc67e8fc559dacd0"
    }

    /// Microseconds since 1970.
    var at: Int64
    var message: Message
    private var values: [String: String]

    /// The fields that journalctl prints; it always adds the time.
    static let fields =
        ["MESSAGE_ID", "FRESHET_MESSAGE"]
        + [
            "PIPELINE", "RUN", "CAUSES", "OUTCOME", "GENERATION", "ERROR", "DURATION", "SIGNAL", "SOURCE", "NUMBER",
            "DETAIL", "WAITING_FOR", "PATH", "TARGET", "SLEPT", "ADDED", "CHANGED", "REMOVED",
        ].map { "FRESHET_" + $0 }

    /// The value of a field. Values that are not text (bytes, or several values of one name) are ignored.
    private enum Value: Decodable {
        case text(String)
        case other

        init(from decoder: any Decoder) throws {
            self = (try? decoder.singleValueContainer().decode(String.self)).map(Value.text) ?? .other
        }
    }

    /// Nil for any other message, or for an invalid line.
    init?(json: some StringProtocol) {
        guard let fields = try? JSONDecoder().decode([String: Value].self, from: Data(json.utf8)) else { return nil }
        values = fields.compactMapValues { value in
            if case .text(let text) = value { text } else { nil }
        }
        guard let at = values["__REALTIME_TIMESTAMP"].flatMap({ Int64($0) }),
            let message = values["MESSAGE_ID"].flatMap(Message.init)
        else { return nil }
        self.at = at
        self.message = message
    }

    private subscript(name: String) -> String? { values["FRESHET_" + name] }

    /// The events that the daemon published when it logged the line.
    var events: [ControlEvent] {
        switch message {
        case .ready, .stopped: []
        case .changed, .unchanged, .failed, .branchesFailed, .loadMoreFailed, .runCutShort, .networkSettling: ended
        case .runStarted: started
        case .fired, .firedMore:
            self["SIGNAL"].map { signal in
                [
                    .signal(
                        signal, number: self["NUMBER"].flatMap { Int64($0) } ?? 0, detail: self["DETAIL"],
                        source: self["SOURCE"], pipeline: self["PIPELINE"], at: at)
                ]
            } ?? []
        case .waiting: waiting
        case .network: network
        case .woke: woke
        case .reloaded:
            [
                .reloaded(
                    detail: "\(self["ADDED"] ?? "0") added, \(self["CHANGED"] ?? "0") changed, "
                        + "\(self["REMOVED"] ?? "0") removed", at: at)
            ]
        }
    }

    private var started: [ControlEvent] {
        guard let pipeline = self["PIPELINE"], let number = self["RUN"].flatMap({ Int64($0) }) else { return [] }
        return [.runStarted(RunStatus(number: number, started: at, causes: causes(until: at)), of: pipeline, at: at)]
    }

    private var ended: [ControlEvent] {
        guard let pipeline = self["PIPELINE"], let number = self["RUN"].flatMap({ Int64($0) }),
            let outcome = self["OUTCOME"].flatMap(RunOutcome.init(rawValue:))
        else { return [] }
        let duration = self["DURATION"].flatMap(Self.duration)
        let began = at - (duration ?? 0)
        let run = RunStatus(
            number: number, started: began, causes: causes(until: began), durationUSec: duration, outcome: outcome,
            generation: self["GENERATION"].flatMap { Int64($0) }, failure: self["ERROR"])
        return [.runEnded(run, of: pipeline, at: at)]
    }

    private var waiting: [ControlEvent] {
        guard let pipeline = self["PIPELINE"], let text = self["WAITING_FOR"] else { return [] }
        let reason: WaitingReason =
            switch text.prefix(while: { $0 != "," && $0 != ":" }) {
            case "network": .network
            case "metered": .metered
            case "power": .power
            case "quiet", "interval", "splay": .quiet
            case "backoff", "retry-after": .backoff
            case "budget": .budget
            case "permit": .permit
            case "memory": .memory
            case "sleep": .sleep
            case "file-system": .filesystem
            default: .unknown
            }
        return [.state(.waiting, of: pipeline, waitingFor: reason, detail: text, at: at)]
    }

    /// Parses causes such as `network (2), timer`. The journal has no times of the causes.
    private func causes(until end: Int64) -> [CauseStatus] {
        (self["CAUSES"] ?? "").split(separator: ",").compactMap { part in
            let words = part.split(separator: " ", maxSplits: 1)
            guard let signal = words.first else { return nil }
            let count = words.count == 2 ? Int64(words[1].filter(\.isNumber)) ?? 1 : 1
            return CauseStatus(signal: String(signal), count: count, first: end, last: end)
        }
    }

    private var network: [ControlEvent] {
        let message = self["MESSAGE"] ?? ""
        let isGone = message.hasPrefix("the network is not reachable")
        let text = (isGone ? "not reachable: " : "reachable ") + (self["PATH"] ?? "")
        let source = self["TARGET"].flatMap { $0 == "elsewhere" ? nil : "network \($0)" }
        let fact = ControlEvent.fact("network", source: source, text, at: at)
        return isGone ? [fact] : [fact, Self.unnumbered("network", text, source: source, at: at)]
    }

    private var woke: [ControlEvent] {
        let slept = self["SLEPT"].flatMap(Self.duration)
        let fact = slept.map { "awake, after \(Double($0 / 100_000) / 10) s of sleep" } ?? "awake again"
        return [.fact("resume", fact, at: at), Self.unnumbered("resume", self["DETAIL"] ?? fact, source: nil, at: at)]
    }

    /// A firing without a number: the journal has only its effect.
    private static func unnumbered(_ signal: String, _ detail: String, source: String?, at: Int64) -> ControlEvent {
        var event = ControlEvent.signal(signal, number: 0, detail: detail, source: source, at: at)
        event.number = nil
        return event
    }

    /// Parses a duration of the journal, in microseconds: `284 µs`, `15 ms`, `3.2 s`, `14min 59s`, `3d 1h`.
    static func duration(_ text: String) -> Int64? {
        var rest = text[...]
        var sum = 0.0
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isASCII && $0.isNumber || $0 == "." }
            rest = rest.dropFirst(digits.count).drop { $0 == " " }
            let unit = rest.prefix { $0.isLetter }
            rest = rest.dropFirst(unit.count).drop { $0 == " " }
            let scale: Double
            switch unit {
            case "µs", "us": scale = 1
            case "ms": scale = 1e3
            case "s": scale = 1e6
            case "min": scale = 60e6
            case "h": scale = 3_600e6
            case "d": scale = 86_400e6
            default: return nil
            }
            guard let number = Double(digits), number < 1e6 else { return nil }
            sum += number * scale
        }
        return sum > 0 && sum < 1e18 ? Int64(sum) : (text.isEmpty ? nil : 0)
    }
}
