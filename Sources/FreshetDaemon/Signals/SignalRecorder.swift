import FreshetControl
import FreshetModel
import FreshetPipelines
import FreshetSignals
import Logging
import Synchronization

/// Counts how often each signal source fired, with the last instant and detail. `freshetctl signals` shows these
/// values, and each occurrence is published and logged. An occurrence has the same number everywhere, also in the
/// causes of runs.
///
/// At the level `debug`, every occurrence is logged. At `info`, only sources without another message there are logged
/// (``follow(_:row:logsAtInfo:)``): the first occurrence, and the number of further ones after a quiet period
/// (``FlapLimiter``).
///
/// Safe to call from any thread. Without subscribers and above `debug`, no text is made: an occurrence costs a look-up
/// and two locks.
final class SignalRecorder: Sendable {
    struct Entry: Hashable, Sendable {
        var fired: Int64 = 0
        /// Wall-clock microseconds since 1970.
        var last: Int64?
        var detail: String?
    }

    /// Follows a source for as long as this object exists; then the source's row is removed. A source that is created
    /// again counts from 1, and so does its row.
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
        /// The name of the row's signal. Several rows may have the same signal.
        var signal = ""
        /// The last published fact of the source.
        var fact: String?
        var burst = FlapLimiter()
        weak var following: Following?
        /// Distinguishes the row from an earlier row of the same name.
        var serial: UInt64 = 0
    }

    private struct State {
        var rows: [ExactText: Row] = [:]
        var lastSerial: UInt64 = 0
        /// Made for the first burst.
        var timer: (any EngineTimer)?
        /// The timer is armed. A burst that continues ends later; when the timer expires, it is armed again.
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
    private let limiter: LogLimiter
    private let clock: any EngineClock
    /// Reports of occurrences, and of the runs that they cause; nil: all are made immediately.
    let reports: DeferredReports?

    init(
        events: ControlEvents, log: Logger, limiter: LogLimiter, clock: any EngineClock, reports: DeferredReports? = nil
    ) {
        self.reports = reports
        self.events = events
        self.log = log
        self.limiter = limiter
        self.clock = clock
    }

    subscript(name: String) -> Entry {
        reports?.flush()
        return state.withLock { $0.rows[ExactText(name)]?.entry ?? Entry() }
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

    /// Records each occurrence of a source from now on, with the source's own numbers. For a row that is followed
    /// already, it returns the existing object.
    ///
    /// - Parameters:
    ///   - row: the name under which the source is shown.
    ///   - logsAtInfo: occurrences are logged at the level `info`, because no other message there mentions them.
    func follow(_ signal: Signal, row: String, logsAtInfo: Bool = false) -> Following {
        let (known, serial) = state.withLock { state -> (Following?, UInt64) in
            if let known = state.rows[ExactText(row)]?.following { return (known, 0) }
            state.lastSerial += 1
            state.rows[ExactText(row)] = Row(serial: state.lastSerial)
            return (nil, state.lastSerial)
        }
        if let known { return known }
        let observation = signal.observe { [self] occurrence in
            let now = WallClock.now
            let report = { @Sendable [self] in
                record(
                    occurrence.signal, row: row, occurrence.detail, logsAtInfo: logsAtInfo, serial: serial, at: now,
                    number: { _ in Int64(clamping: occurrence.number) })
            }
            if let reports { reports.add(report) } else { report() }
        }
        let following = Following(observation) { [self] in
            reports?.flush()
            forget(row, serial)
        }
        state.withLock { $0.rows[ExactText(row)]?.following = following }
        return following
    }

    private func forget(_ row: String, _ serial: UInt64) {
        state.withLock { if $0.rows[ExactText(row)]?.serial == serial { $0.rows[ExactText(row)] = nil } }
    }

    /// Records an occurrence of a signal that has no source, such as a pipeline's timer.
    ///
    /// - Parameters:
    ///   - row: the row that counts the occurrence; nil: the row of the signal's name.
    ///   - pipeline: the pipeline, if only this one receives the signal.
    func recordOccurrence(
        _ signal: String, row: String? = nil, _ detail: String?, pipeline: String? = nil, count: Int = 1
    ) {
        reports?.flush()
        record(
            signal, row: row ?? signal, detail, pipeline: pipeline, at: WallClock.now, number: { $0 + Int64(count) })
    }

    /// - Parameters:
    ///   - now: the wall-clock time of the occurrence.
    ///   - serial: the serial of the row if a source is followed, otherwise 0.
    ///   - number: makes the number of the occurrence from the previous one.
    private func record(
        _ signal: String, row name: String, _ detail: String?, pipeline: String? = nil, logsAtInfo: Bool = false,
        serial: UInt64 = 0, at now: Int64, number: (Int64) -> Int64
    ) {
        let recorded = state.withLock { state -> (number: Int64, logs: Bool)? in
            var row = state.rows[ExactText(name)] ?? Row()
            guard row.serial == serial else { return nil }  // the row of this source was removed
            row.signal = signal
            row.entry = Entry(fired: number(row.entry.fired), last: now, detail: detail)
            let decision = logsAtInfo ? row.burst.changed(at: clock.now) : .suppress
            state.rows[ExactText(name)] = row
            if logsAtInfo, decision == .suppress { arm(&state) }
            return (row.entry.fired, decision == .log)
        }
        guard let recorded else { return }
        events.publish(
            .signal(
                signal, number: recorded.number, detail: detail, source: name == signal ? nil : name,
                pipeline: pipeline, at: now))
        if recorded.logs {
            limiter.log(
                .fired, level: .info, fields(signal, name, number: recorded.number, detail, pipeline: pipeline))
        } else {
            log.log(.fired, fields(signal, name, number: recorded.number, detail, pipeline: pipeline))
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

    /// Sets the fact of a row, and publishes it if it has changed. The first fact is stored for later subscribers only.
    func fact(_ signal: String, row name: String? = nil, _ fact: @autoclosure () -> String) {
        reports?.flush()
        let (name, fact) = (name ?? signal, fact())
        let before = state.withLock { state -> String?? in
            guard state.rows[ExactText(name)] != nil else { return nil }
            defer { state.rows[ExactText(name)]?.fact = fact }
            return .some(state.rows[ExactText(name)]?.fact)
        }
        guard let before, before != fact else { return }
        let event = ControlEvent.fact(signal, source: name == signal ? nil : name, fact, at: WallClock.now)
        if before == nil { events.remember(event) } else { events.publish(event) }
    }

    // MARK: Bursts

    /// Logs all pending summaries, because no further occurrence follows.
    func finish() {
        reports?.flush()
        let summaries = state.withLock { state in
            state.rows.compactMap { name, row in
                row.burst.suppressed > 0
                    ? Summary(
                        row: name.text, signal: row.signal, entry: row.entry, count: row.burst.suppressed, goesOn: false
                    )
                    : nil
            }
        }
        log(summaries)
    }

    private func timerExpired() {
        let now = clock.now
        let summaries = state.withLock { state in
            var summaries: [Summary] = []
            for (name, row) in state.rows where row.burst.isPending {
                var row = row
                let (count, goesOn): (Int, Bool)
                switch row.burst.elapsed(at: now) {
                case .quiet(let changes): (count, goesOn) = (changes, false)
                case .goesOn(let changes): (count, goesOn) = (changes, true)
                case nil: continue
                }
                state.rows[name] = row
                summaries.append(
                    Summary(row: name.text, signal: row.signal, entry: row.entry, count: count, goesOn: goesOn))
            }
            state.isArmed = false
            arm(&state)
            return summaries
        }
        log(summaries)
    }

    /// Arms the timer only while a summary is pending, so that a source that fires rarely does not wake the process.
    private func arm(_ state: inout State) {
        guard !state.isArmed else { return }
        guard let due = state.rows.values.lazy.filter(\.burst.isPending).compactMap(\.burst.due).min() else { return }
        let timer = state.timer ?? clock.makeTimer { [weak self] in self?.timerExpired() }
        state.timer = timer
        state.isArmed = true
        timer.arm(at: due)
    }

    private func log(_ summaries: [Summary]) {
        for summary in summaries.sorted(by: { $0.row < $1.row }) where summary.count > 0 {
            var fields = fields(
                summary.signal, summary.row, number: summary.entry.fired, summary.entry.detail)
            fields[.count] = .stringConvertible(summary.count)
            limiter.log(.firedMore, text: summary.goesOn ? "{signal} keeps firing: {count} more times" : nil, fields)
        }
    }
}
