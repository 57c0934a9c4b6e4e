/// What a daemon saw in a window of time: signals, facts and runs. `freshetctl record` writes it, and `freshetd
/// --replay` reads it. docs/replay.md describes the file: JSON lines, the first one a header with the version.
///
/// It has no content, no reasons of failures and no URLs with user information or queries.
package struct Recording: Hashable, Sendable {
    /// The version of the file's format. A reader rejects any other.
    package static let version: Int64 = 1

    /// The first line.
    package struct Header: Codable, Hashable, Sendable {
        /// The version of the format.
        package var version: Int64
        /// The version of the program that wrote the file.
        package var freshet: String
        /// The beginning and the end of the window, in microseconds since 1970.
        package var since: Int64
        package var until: Int64

        package init(since: Int64, until: Int64, version: Int64 = Recording.version, freshet: String = Version.current)
        {
            self.version = version
            self.freshet = freshet
            self.since = since
            self.until = until
        }
    }

    /// A pipeline that the daemon had when the file was written.
    package struct Pipeline: Codable, Hashable, Sendable {
        package var name: String
        /// Where the data comes from, without user information and query.
        package var source: String
        /// The sources of signals to which it subscribed.
        package var signals: [String]
        /// The time between a successful check and the next planned one; nil: there was none.
        package var everyUSec: Int64?
        /// The last successful check, in microseconds since 1970; nil: none is known.
        package var lastCheck: Int64?
        /// The number of the current generation; nil: there was no copy.
        package var generation: Int64?

        package init(
            name: String, source: String, signals: [String] = [], everyUSec: Int64? = nil, lastCheck: Int64? = nil,
            generation: Int64? = nil
        ) {
            self.name = name
            self.source = source
            self.signals = signals
            self.everyUSec = everyUSec
            self.lastCheck = lastCheck
            self.generation = generation
        }
    }

    /// A source of signals that the daemon observed when the file was written.
    package struct Source: Codable, Hashable, Sendable {
        /// The name of its row in `Signals`.
        package var name: String
        package var fact: String
        /// Why it detected nothing; nil: it worked.
        package var unavailable: String?

        package init(name: String, fact: String, unavailable: String? = nil) {
            self.name = name
            self.fact = fact
            self.unavailable = unavailable
        }
    }

    /// A range of time without known events, in microseconds since 1970.
    package struct Gap: Codable, Hashable, Sendable {
        package var from: Int64
        package var to: Int64

        package init(from: Int64, to: Int64) {
            self.from = from
            self.to = to
        }
    }

    package var header: Header
    package var pipelines: [Pipeline] = []
    package var sources: [Source] = []
    package var gaps: [Gap] = []
    /// Oldest first. Events before the window give the state at its beginning.
    package var events: [ControlEvent] = []

    package init(header: Header) { self.header = header }

    /// The file.
    package var text: String {
        var text = ""
        func add(_ line: some Encodable) {
            text += ControlJSON.text(of: line)
            text += "\n"
        }
        add(["recording": header])
        for pipeline in pipelines { add(["pipeline": pipeline]) }
        for source in sources { add(["source": source]) }
        for gap in gaps { add(["gap": gap]) }
        for event in events { add(["event": event]) }
        return text
    }
}

extension ControlEvent {
    /// The part of the event that a recording has; nil: a recording does not have such events. Messages of failures may
    /// quote content, so a recording has only the kinds of failures.
    package var recorded: ControlEvent? {
        var event = self
        event.generation = nil
        event.run?.failure = nil
        event.run?.causes =
            run?.causes.map { cause in
                var cause = cause
                cause.detail = nil
                return cause
            } ?? []
        switch kind {
        case .signal, .fact, .runEnded, .reloaded: return event
        case .state:
            // Only holds change what runs. The others follow from signals, facts and runs.
            event.detail = nil
            event.waitingFor = nil
            event.waitingUntil = nil
            return event
        case .runStarted, .skipped, .unknown: return nil
        }
    }
}
