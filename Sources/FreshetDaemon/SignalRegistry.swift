import FreshetControl
import FreshetPipelines
import FreshetSignals
import Logging
import Synchronization

/// How often each source of signals fired, and when and why last: what `freshetctl signals` shows, what those who follow
/// are told, and what the journal says of occurrences. Their number is the same in all three, and in the causes of runs.
///
/// At the level `debug` the journal has every occurrence. At `info` it has those that nothing else there tells of
/// (``follow(_:row:isNews:)``): the first, and how many more there were when it has become calm (``FlapLimiter``).
///
/// Safe to call from any thread. Text is made only for who reads it: without followers and above `debug`, an occurrence
/// costs a look-up and two locks.
final class SignalRegistry: Sendable {
    struct Entry: Hashable, Sendable {
        var fired: Int64 = 0
        /// Wall-clock microseconds since 1970.
        var last: Int64?
        var detail: String?
    }

    /// A source that is followed, for as long as this is kept; then its row is forgotten. A source that is made anew
    /// counts from 1 again, and so does its row.
    final class Following: Sendable {
        private let observation: SignalObservation
        private let onEnd: @Sendable () -> Void

        fileprivate init(_ observation: SignalObservation, onEnd: @escaping @Sendable () -> Void) {
            self.observation = observation
            self.onEnd = onEnd
        }

        deinit { onEnd() }
    }

    private struct Row {
        var entry = Entry()
        /// The name of its signal, of which there may be several rows.
        var signal = ""
        /// What was told last of the fact behind it.
        var fact: String?
        var storm = FlapLimiter()
        weak var following: Following?
        /// Tells it from the one of the same name before it.
        var serial: UInt64 = 0
    }

    private struct State {
        var rows: [String: Row] = [:]
        var lastSerial: UInt64 = 0
        /// Made with the first storm.
        var timer: (any EngineTimer)?
        /// The timer is on its way. A storm that goes on moves its end: it is looked up when the timer comes.
        var isArmed = false
    }

    private struct Summary {
        var row: String
        var signal: String
        var entry: Entry
        var count: Int
        var goesOn: Bool
    }

    private let state = Mutex(State())
    private let events: ControlEvents
    private let log: Logger
    private let desk: LogLimiter
    private let clock: any EngineClock

    init(events: ControlEvents, log: Logger, desk: LogLimiter, clock: any EngineClock) {
        self.events = events
        self.log = log
        self.desk = desk
        self.clock = clock
    }

    subscript(name: String) -> Entry {
        state.withLock { $0.rows[name]?.entry ?? Entry() }
    }

    func status(
        _ name: String, fact: String, unavailable: String? = nil, ignored: UInt64? = nil
    ) -> SignalStatus {
        let entry = self[name]
        return SignalStatus(
            name: name, fact: fact, unavailable: unavailable, fired: entry.fired,
            ignored: ignored.map { Int64(clamping: $0) }, lastFired: entry.last, lastDetail: entry.detail)
    }

    // MARK: Occurrences

    /// Notes each firing of a source from now on, under the source's own numbers. Who asks for a row that is followed
    /// gets the same.
    ///
    /// - Parameters:
    ///   - row: what it is shown as, if not by the signal's name.
    ///   - isNews: nothing else tells of it at the level `info`.
    func follow(_ signal: Signal, row: String, isNews: Bool = false) -> Following {
        let (known, serial) = state.withLock { state -> (Following?, UInt64) in
            if let known = state.rows[row]?.following { return (known, 0) }
            state.lastSerial += 1
            state.rows[row] = Row(serial: state.lastSerial)
            return (nil, state.lastSerial)
        }
        if let known { return known }
        let observation = signal.observe { [self] occurrence in
            record(
                occurrence.signal, row: row, occurrence.detail, isNews: isNews, serial: serial,
                number: { _ in Int64(clamping: occurrence.number) })
        }
        let following = Following(observation) { [self] in forget(row, serial) }
        state.withLock { $0.rows[row]?.following = following }
        return following
    }

    private func forget(_ row: String, _ serial: UInt64) {
        state.withLock { if $0.rows[row]?.serial == serial { $0.rows[row] = nil } }
    }

    /// Notes a firing of what has no source of its own, such as a pipeline's timer.
    ///
    /// - Parameters:
    ///   - row: what it is counted under, where one signal has several rows.
    ///   - pipeline: set if one pipeline alone listens to it.
    func note(_ signal: String, row: String? = nil, _ detail: String?, pipeline: String? = nil, count: Int = 1) {
        record(signal, row: row ?? signal, detail, pipeline: pipeline, number: { $0 + Int64(count) })
    }

    /// - Parameters:
    ///   - serial: that of the row, if a source is followed for it.
    ///   - number: the firing's, by that of the one before.
    private func record(
        _ signal: String, row name: String, _ detail: String?, pipeline: String? = nil, isNews: Bool = false,
        serial: UInt64 = 0, number: (Int64) -> Int64
    ) {
        let now = WallClock.now
        let noted = state.withLock { state -> (number: Int64, tell: Bool)? in
            var row = state.rows[name] ?? Row()
            guard row.serial == serial else { return nil }  // the last word of a source that was let go
            row.signal = signal
            row.entry = Entry(fired: number(row.entry.fired), last: now, detail: detail)
            let verdict = isNews ? row.storm.changed(at: clock.now) : .passOver
            state.rows[name] = row
            if isNews, verdict == .passOver { arm(&state) }
            return (row.entry.fired, verdict == .say)
        }
        guard let noted else { return }
        events.publish(
            .signal(
                signal, number: noted.number, detail: detail, source: name == signal ? nil : name, pipeline: pipeline,
                at: now))
        if noted.tell {
            desk.say(
                .fired, level: .info, fields(signal, name, number: noted.number, detail, pipeline: pipeline))
        } else {
            log.say(.fired, fields(signal, name, number: noted.number, detail, pipeline: pipeline))
        }
    }

    private func fields(
        _ signal: String, _ row: String, number: Int64, _ detail: String?, pipeline: String? = nil
    ) -> [JournalField: Logger.MetadataValue] {
        var fields: [JournalField: Logger.MetadataValue] = [
            .signal: .string(signal), .number: .stringConvertible(number),
        ]
        if row != signal { fields[.source] = .string(row) }
        if let detail { fields[.detail] = .string(detail) }
        if let pipeline { fields[.pipeline] = .string(pipeline) }
        return fields
    }

    // MARK: Facts

    /// The fact behind a row is this now: who follows is told if it is another one. The first is no news.
    func fact(_ signal: String, row name: String? = nil, _ fact: @autoclosure () -> String) {
        let (name, fact) = (name ?? signal, fact())
        let before = state.withLock { state -> String?? in
            guard state.rows[name] != nil else { return nil }
            defer { state.rows[name]?.fact = fact }
            return .some(state.rows[name]?.fact)
        }
        guard let before, before != fact else { return }
        let event = ControlEvent.fact(signal, source: name == signal ? nil : name, fact, at: WallClock.now)
        if before == nil { events.remember(event) } else { events.publish(event) }
    }

    // MARK: Storms

    /// Nothing more comes: what was only counted is told.
    func finish() {
        let summaries = state.withLock { state in
            state.rows.compactMap { name, row in
                row.storm.passedOver > 0
                    ? Summary(
                        row: name, signal: row.signal, entry: row.entry, count: row.storm.passedOver, goesOn: false)
                    : nil
            }
        }
        tell(summaries)
    }

    private func timerExpired() {
        let now = clock.now
        let summaries = state.withLock { state in
            var summaries: [Summary] = []
            for (name, row) in state.rows where row.storm.isOwed {
                var row = row
                let (count, goesOn): (Int, Bool)
                switch row.storm.elapsed(at: now) {
                case .calm(let changes): (count, goesOn) = (changes, false)
                case .goesOn(let changes): (count, goesOn) = (changes, true)
                case nil: continue
                }
                state.rows[name] = row
                summaries.append(
                    Summary(row: name, signal: row.signal, entry: row.entry, count: count, goesOn: goesOn))
            }
            state.isArmed = false
            arm(&state)
            return summaries
        }
        tell(summaries)
    }

    /// Only while there is something to be summed up: what fires once in a while wakes nobody.
    private func arm(_ state: inout State) {
        guard !state.isArmed else { return }
        guard let due = state.rows.values.lazy.filter(\.storm.isOwed).compactMap(\.storm.due).min() else { return }
        let timer = state.timer ?? clock.makeTimer { [weak self] in self?.timerExpired() }
        state.timer = timer
        state.isArmed = true
        timer.arm(at: due)
    }

    private func tell(_ summaries: [Summary]) {
        for summary in summaries.sorted(by: { $0.row < $1.row }) where summary.count > 0 {
            var fields = fields(
                summary.signal, summary.row, number: summary.entry.fired, summary.entry.detail)
            fields[.count] = .stringConvertible(summary.count)
            log.say(.firedMore, text: summary.goesOn ? "{signal} keeps firing, {count} times more" : nil, fields)
        }
    }
}
