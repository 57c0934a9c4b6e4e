import FreshetModel
import FreshetPipelines

/// Reads `refresh`.
struct RefreshReader {
    let reader: DefinitionReader

    /// The smallest `every`: more frequent polling would overload the origin.
    static let minimumEvery: Duration = .seconds(1)
    /// The smallest `retry.from`: a shorter backoff would be a busy loop.
    static let minimumRetry: Duration = .milliseconds(100)
    /// How many paths `files` may have: each costs inotify(7) watches of the service's user.
    static let maximumFiles = 64
    /// The smallest `deadline`: a shorter one would fail every run.
    static let minimumDeadline: Duration = .milliseconds(100)

    func refresh(in file: Section) -> RefreshPolicy {
        var policy = RefreshPolicy(on: reader.context.defaultSignals)
        guard let section = reader.section(.refresh, "refresh", in: file) else { return policy }
        if let on = on(in: section) { policy.on = on }
        policy.dbus = BusMatchReader(reader: reader).dbus(in: section)
        CalendarReader(reader: reader).readTimes(in: section, into: &policy)
        policy.randomDelay = reader.value("random-delay", in: section, .duration()) ?? policy.randomDelay
        policy.minInterval = reader.value("min-interval", in: section, .duration()) ?? policy.minInterval
        policy.deadline =
            reader.value("deadline", in: section, .duration(Self.minimumDeadline...TimeSpan.longest)) ?? policy.deadline
        policy.whenRunning = reader.value("when-running", in: section, .choice()) ?? policy.whenRunning
        policy.budget = reader.value("budget", in: section, .budget)
        policy.needsNetwork = NetworkNeedReader(reader: reader).networkNeed(in: section) ?? policy.needsNetwork
        policy.whenMetered = reader.value("metered", in: section, .choice()) ?? policy.whenMetered
        if let power = reader.section(.power, "power", in: section) {
            policy.onBattery = reader.value("on-battery", in: power, .choice()) ?? policy.onBattery
        }
        policy.files = files(in: section)
        PredecessorReader(reader: reader).after(in: section)
        readBurst(in: section, into: &policy)
        readFreshness(in: section, into: &policy)
        if let retry = reader.section(.retry, "retry", in: section) { policy.retry = self.retry(in: retry) }
        if let every = policy.every, every < policy.minInterval, let entry = section["every"] {
            reader.warning(
                entry.value.location, "refresh.every",
                "'every' is shorter than 'min-interval', which takes precedence",
                remedy: "make 'min-interval' shorter than 'every'")
        }
        return policy
    }

    private func on(in section: Section) -> Set<StandardSignal>? {
        guard let names = reader.list("on", in: section, .signal) else { return nil }
        var on: Set<StandardSignal> = []
        for (signal, location) in names where !on.insert(signal).inserted {
            reader.warning(
                location, "refresh.on", "'on' names '\(signal.rawValue)' twice", remedy: "remove one of them")
        }
        return on
    }

    private func files(in section: Section) -> [String] {
        guard let paths = reader.list("files", in: section, .watchedPath) else { return [] }
        if paths.count > Self.maximumFiles {
            reader.addError(
                paths[Self.maximumFiles].location, "refresh.files", "'files' has more than \(Self.maximumFiles) paths",
                remedy: "use a directory: a change of any of its entries fires the signal")
        }
        var files: [String] = []
        for (path, location) in paths {
            if files.contains(path) {
                reader.warning(
                    location, "refresh.files", "'files' names \(path.quoted) twice", remedy: "remove one of them")
            } else {
                files.append(path)
            }
        }
        return files
    }

    /// Reads `quiet` and `at-most`. If only one of them is configured, the default of the other is adapted to it.
    private func readBurst(in section: Section, into policy: inout RefreshPolicy) {
        let quiet = reader.value("quiet", in: section, .duration())
        let atMost = reader.value("at-most", in: section, .duration())
        if let quiet, let atMost, quiet > atMost, let entry = section["quiet"] {
            reader.addError(
                entry.value.location, "refresh.quiet", "'quiet' is longer than 'at-most', so it would have no effect",
                remedy: "make 'at-most' at least as long", related: section["at-most"]?.location)
        }
        policy.quiet = quiet ?? min(policy.quiet, atMost ?? policy.quiet)
        policy.atMost = atMost ?? max(policy.atMost, policy.quiet)
    }

    private func readFreshness(in section: Section, into policy: inout RefreshPolicy) {
        let freshFor = reader.value("fresh-for", in: section, .duration())
        if let freshFor, let every = policy.every, freshFor >= every, let entry = section["fresh-for"] {
            reader.addError(
                entry.value.location, "refresh.fresh-for",
                "'fresh-for' is not shorter than 'every', so no signal would ever start a run",
                remedy: "make it shorter than \(TimeSpan.text(every))", related: section["every"]?.location)
        }
        policy.honoursOrigin = reader.value("honour-origin", in: section, .boolean) ?? policy.honoursOrigin
        policy.freshFor = freshFor ?? policy.every.map { min(policy.freshFor, $0 / 2) } ?? policy.freshFor
    }

    /// Warns if `honour-origin` has no effect: only the answer of a single URL has headers about its freshness.
    func checkHonour(of refresh: RefreshPolicy, in file: Section, _ stage: StageDefinition?) {
        guard refresh.honoursOrigin, let stage, stage.source.origin == nil || stage.each != nil,
            let entry = reader.entry("honour-origin", below: "refresh", in: file)
        else { return }
        reader.warning(
            entry.location, "refresh.honour-origin",
            "'honour-origin' has no effect: it needs a source that is a single 'url'",
            remedy: "leave it out")
    }

    private func retry(in section: Section) -> RetryPolicy {
        let defaults = RetryPolicy()
        let range = Self.minimumRetry...TimeSpan.longest
        let from = reader.value("from", in: section, .duration(range))
        let to = reader.value("to", in: section, .duration(range))
        if let from, let to, from > to, let entry = section["from"] {
            reader.addError(
                entry.value.location, "refresh.retry.from", "'from' is longer than 'to'",
                remedy: "the backoff grows from 'from' to 'to': exchange them", related: section["to"]?.location)
        }
        return RetryPolicy(
            from: from ?? min(defaults.from, to ?? defaults.from), to: to ?? max(defaults.to, from ?? defaults.to))
    }
}

extension ValueKind where Value: CaseIterable & RawRepresentable<String> {
    /// One of the raw values of an enumeration.
    static func choice() -> ValueKind {
        ValueKind(name: "one of \(choices)") { scalar throws(ValueError) in
            if let value = Value(rawValue: scalar.text) { return value }
            let near = Suggestion.nearest(to: scalar.text, among: Value.allCases.map(\.rawValue))
            throw ValueError(
                "has to be one of \(choices), not \(scalar.text.quoted)", remedy: near.map { "did you mean '\($0)'?" })
        }
    }

    private static var choices: String { Value.allCases.map(\.rawValue).joined(separator: ", ") }
}

extension ValueKind where Value == StandardSignal {
    fileprivate static let signal = ValueKind(name: "a list of signals such as [network, resume]") {
        scalar throws(ValueError) in
        if let signal = StandardSignal(rawValue: scalar.text) { return signal }
        guard scalar.text != "operator" else {
            throw ValueError(
                "does not accept 'operator'", remedy: "leave it out: every pipeline receives requests of the operator")
        }
        return try ValueKind.choice().read(scalar)
    }
}

extension ValueKind where Value == String {
    /// The path of a watched file or directory, which need not exist.
    fileprivate static let watchedPath = ValueKind(name: "a list of absolute paths") { scalar throws(ValueError) in
        let text = scalar.text
        guard text != "/" else {
            throw ValueError("cannot be the root directory", remedy: "use a file or directory below it")
        }
        guard !text.hasSuffix("/") else {
            throw ValueError("ends in '/'", remedy: "remove the '/', also from the path of a directory")
        }
        let path = try ValueKind.absolutePath.read(scalar)
        guard !path.unicodeScalars.contains(where: \.actsOnTerminal) else {
            throw ValueError("has to be a path without control characters")
        }
        let names = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard !names.contains("..") else {
            throw ValueError("must not contain '..'", remedy: "write the path without '..'")
        }
        guard !names.contains("."), !names.contains("") else {
            throw ValueError("contains an empty name or '.'", remedy: "remove it")
        }
        return path
    }
}

extension ValueKind where Value == RequestBudget {
    /// A number of requests and the time in which they may be made.
    fileprivate static let budget = ValueKind(name: "a budget such as 500/day or 20/hour") {
        scalar throws(ValueError) in
        let parts = scalar.text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let period = RequestBudget.Period(rawValue: String(parts[1])) else {
            throw ValueError(
                "has to be a budget such as 500/day or 20/hour, not \(scalar.text.quoted)",
                remedy: "write the number of requests, a slash, and hour or day")
        }
        let digits = String(parts[0])
        guard let limit = Int(digits), limits.contains(limit), digits.utf8.allSatisfy({ (48...57).contains($0) })
        else {
            throw ValueError(
                "needs a number from \(limits.lowerBound) to \(limits.upperBound) before the slash, not "
                    + digits.quoted)
        }
        return RequestBudget(limit, per: period)
    }

    /// The allowed numbers of requests.
    private static var limits: ClosedRange<Int> { 1...1_000_000 }
}
