import FreshetPipelines

extension DefinitionReader {
    /// The least `every`: below it polling is the wrong tool, and the origin is not treated well.
    static let leastEvery: Duration = .seconds(1)
    /// The least `retry.from`: a shorter wait is a loop.
    static let leastRetry: Duration = .milliseconds(100)
    /// The most paths below `files`: each costs inotify(7) watches of the service's user.
    static let mostFiles = 64
    /// The least `deadline`: a shorter one fails every run.
    static let leastDeadline: Duration = .milliseconds(100)

    mutating func refresh(in file: Section) -> RefreshPolicy {
        var policy = RefreshPolicy(on: terms.defaultSignals)
        guard let section = section(.refresh, "refresh", in: file) else { return policy }
        if let on = on(in: section) { policy.on = on }
        policy.dbus = dbus(in: section)
        policy.every = value("every", in: section, .durationOrInfinity(Self.leastEvery...TimeSpan.longest)) ?? nil
        policy.randomDelay = value("random-delay", in: section, .duration()) ?? policy.randomDelay
        policy.minInterval = value("min-interval", in: section, .duration()) ?? policy.minInterval
        policy.deadline =
            value("deadline", in: section, .duration(Self.leastDeadline...TimeSpan.longest)) ?? policy.deadline
        policy.whenRunning = value("when-running", in: section, .choice()) ?? policy.whenRunning
        policy.budget = value("budget", in: section, .budget)
        policy.needsNetwork = networkNeed(in: section) ?? policy.needsNetwork
        policy.files = files(in: section)
        after(in: section)
        readStorm(in: section, into: &policy)
        readFreshness(in: section, into: &policy)
        if let retry = self.section(.retry, "retry", in: section) { policy.retry = self.retry(in: retry) }
        if let every = policy.every, every < policy.minInterval, let entry = section["every"] {
            warning(
                entry.value.location, "refresh.every",
                "'every' is shorter than 'min-interval', which has the last word",
                remedy: "make 'min-interval' the shorter one")
        }
        return policy
    }

    private mutating func on(in section: Section) -> Set<StandardSignal>? {
        guard let names = list("on", in: section, .signal) else { return nil }
        var on: Set<StandardSignal> = []
        for (signal, location) in names where !on.insert(signal).inserted {
            warning(location, "refresh.on", "'\(signal.rawValue)' stands twice", remedy: "once is enough")
        }
        return on
    }

    private mutating func files(in section: Section) -> [String] {
        guard let paths = list("files", in: section, .watchedPath) else { return [] }
        if paths.count > Self.mostFiles {
            error(
                paths[Self.mostFiles].location, "refresh.files", "'files' has more than \(Self.mostFiles) paths",
                remedy: "name a directory: a change of any of its entries counts")
        }
        var files: [String] = []
        for (path, location) in paths {
            if files.contains(path) {
                warning(location, "refresh.files", "\(path.quoted) stands twice", remedy: "once is enough")
            } else {
                files.append(path)
            }
        }
        return files
    }

    /// A default gives way to what is configured: it never makes an error of it.
    private mutating func readStorm(in section: Section, into policy: inout RefreshPolicy) {
        let quiet = value("quiet", in: section, .duration())
        let atMost = value("at-most", in: section, .duration())
        if let quiet, let atMost, quiet > atMost, let entry = section["quiet"] {
            error(
                entry.value.location, "refresh.quiet", "'quiet' is longer than 'at-most', so that it would never pass",
                remedy: "make 'at-most' at least as long", related: section["at-most"]?.location)
        }
        policy.quiet = quiet ?? min(policy.quiet, atMost ?? policy.quiet)
        policy.atMost = atMost ?? max(policy.atMost, policy.quiet)
    }

    private mutating func readFreshness(in section: Section, into policy: inout RefreshPolicy) {
        let freshFor = value("fresh-for", in: section, .duration())
        if let freshFor, let every = policy.every, freshFor >= every, let entry = section["fresh-for"] {
            error(
                entry.value.location, "refresh.fresh-for",
                "'fresh-for' is not shorter than 'every', so that signals would never fetch anything",
                remedy: "make it shorter than \(TimeSpan.text(every))", related: section["every"]?.location)
        }
        policy.honoursOrigin = value("honour-origin", in: section, .boolean) ?? policy.honoursOrigin
        policy.freshFor = freshFor ?? policy.every.map { min(policy.freshFor, $0 / 2) } ?? policy.freshFor
    }

    /// A key of a mapping that was read before: its faults are not reported again.
    func entry(_ key: String, below parent: String, in file: Section) -> Node.Entry? {
        guard case .mapping(let entries)? = file[parent]?.value.content else { return nil }
        return entries.first { $0.key == key }
    }

    /// Only HTTP has words for how long data is fresh, and one answer for all of it.
    mutating func checkHonour(of refresh: RefreshPolicy, in file: Section, _ stage: StageDefinition?) {
        guard refresh.honoursOrigin, let stage, stage.source.origin == nil || stage.each != nil,
            let entry = entry("honour-origin", below: "refresh", in: file)
        else { return }
        warning(
            entry.location, "refresh.honour-origin",
            "'honour-origin' is about what one URL's answer says, and there is not one, or not one alone",
            remedy: "leave it out")
    }

    private mutating func retry(in section: Section) -> RetryPolicy {
        let defaults = RetryPolicy()
        let range = Self.leastRetry...TimeSpan.longest
        let from = value("from", in: section, .duration(range))
        let to = value("to", in: section, .duration(range))
        if let from, let to, from > to, let entry = section["from"] {
            error(
                entry.value.location, "refresh.retry.from", "'from' is longer than 'to'",
                remedy: "the wait grows from the one to the other: exchange them", related: section["to"]?.location)
        }
        return RetryPolicy(
            from: from ?? min(defaults.from, to ?? defaults.from), to: to ?? max(defaults.to, from ?? defaults.to))
    }
}

extension ValueKind where Value: CaseIterable & RawRepresentable<String> {
    /// One of an enumeration's words.
    static func choice() -> ValueKind {
        let words = Value.allCases.map(\.rawValue)
        let choices = words.joined(separator: ", ")
        return ValueKind(name: "one of \(choices)") { scalar throws(ValueError) in
            if let value = Value(rawValue: scalar.text) { return value }
            let near = Suggestion.nearest(to: scalar.text, among: words)
            throw ValueError(
                "has to be one of \(choices), not \(scalar.text.quoted)", remedy: near.map { "did you mean '\($0)'?" })
        }
    }
}

extension ValueKind where Value == StandardSignal {
    fileprivate static let signal = ValueKind(name: "a list of signals such as [network, resume]") {
        scalar throws(ValueError) in
        guard scalar.text != "operator" else {
            throw ValueError("need not name 'operator'", remedy: "the operator is always heard: leave it out")
        }
        return try ValueKind.choice().read(scalar)
    }
}

extension ValueKind where Value == String {
    /// A path whose changes are heeded: of a file or a directory, there or not.
    fileprivate static let watchedPath = ValueKind(name: "a list of absolute paths") { scalar throws(ValueError) in
        let text = scalar.text
        guard text != "/" else {
            throw ValueError("cannot be the root directory", remedy: "name what matters below it")
        }
        guard !text.hasSuffix("/") else {
            throw ValueError("ends in '/'", remedy: "leave that out, for a directory too")
        }
        let path = try ValueKind.absolutePath.read(scalar)
        guard !path.unicodeScalars.contains(where: \.actsOnTerminal) else {
            throw ValueError("has to be a path without control characters")
        }
        let names = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard !names.contains("..") else {
            throw ValueError("must not hold '..'", remedy: "write the path out")
        }
        guard !names.contains("."), !names.contains("") else {
            throw ValueError("holds an empty name or '.'", remedy: "leave it out")
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
        guard let limit = Int(digits), mostBudget.contains(limit), digits.utf8.allSatisfy({ (48...57).contains($0) })
        else {
            throw ValueError(
                "needs a number from \(mostBudget.lowerBound) to \(mostBudget.upperBound) in front of the slash, not "
                    + digits.quoted)
        }
        return RequestBudget(limit, per: period)
    }

    /// Far beyond what anybody would call a budget.
    private static var mostBudget: ClosedRange<Int> { 1...1_000_000 }
}
