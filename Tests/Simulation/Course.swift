import FreshetPipelines
import FreshetSystemSignals
import FreshetTestKit
import WorldTestSupport

/// Random days of a machine: what happens next, when, and how origins answer.
struct Course {
    let machine: Machine
    private var dice: Jitter
    private let names: [String]
    private let steps: Int
    private var version = 0
    /// The pipelines whose sources have pages.
    private let paged: Set<String>

    private static let paths = ["/etc/app.conf", "/srv/data/list", "/run/app/state"]
    private static let interfaces = ["org.example.Disks", "org.example.Power"]
    private static let places = ["home", "office", "train"]

    /// Most courses are short, since most errors need few steps; one in twenty-five is long.
    init(_ seed: UInt64, flaw: Flaw? = nil) {
        dice = Jitter(seed: seed)
        machine = Machine([:], host: dice.next(), seed: dice.next(), flaw: flaw)
        names = Array(["a", "b", "c", "d"].prefix(Int.random(in: 1...4, using: &dice)))
        var paged: Set<String> = []
        for name in names where Int.random(in: 0..<3, using: &dice) == 0 { paged.insert(name) }
        self.paged = paged
        let most = Int.random(in: 0..<25, using: &dice) == 0 ? 120 : 12
        steps = Int.random(in: 3...most, using: &dice)
    }

    /// Runs the course to its end, at which all is well.
    mutating func run() throws {
        for name in names {
            for base in bases(of: name) { everyPage(of: name, at: base, says: "good") }
            machine.files["pipelines/\(name).yaml"] = file(name)
        }
        machine.files["freshet.yaml"] = daemonFile()
        if chance(3) { machine.system.route = nil }
        machine.place.internet.isUp = machine.system.route != nil
        try machine.boot()
        for _ in 0..<steps { try step() }
        try end()
    }

    /// One of several durations.
    private mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &dice) == 0 }

    private mutating func seconds(_ range: ClosedRange<Double>) -> Duration {
        .milliseconds(Int64(Double.random(in: range, using: &dice) * 1000))
    }

    private func pick<Element>(_ elements: [Element], _ dice: inout Jitter) -> Element {
        // safe: no list is empty.
        elements[Int.random(in: elements.indices, using: &dice)]
    }

    // MARK: Configuration

    private mutating func daemonFile() -> String {
        var text = "concurrency: \(Int.random(in: 1...3, using: &dice))\n"
        if chance(6) { text += "splay: \(Int.random(in: 1...60, using: &dice))s\n" }
        return text
    }

    /// A random file of a pipeline.
    private mutating func file(_ name: String) -> String {
        var keys: [String] = []
        if chance(2) { keys.append("every: \(Int.random(in: 2...120, using: &dice))min") }
        if chance(3) { keys.append("random-delay: \(Int.random(in: 1...300, using: &dice))s") }
        if chance(2) { keys.append("min-interval: \(Int.random(in: 1...20, using: &dice))s") }
        if chance(3) { keys.append("when-running: \(chance(3) ? "ignore" : "restart")") }
        if chance(2) { keys.append("deadline: 30s") }
        if chance(2) { keys.append("fresh-for: 0") }
        if chance(6) { keys.append("quiet: 0") }
        if chance(6) { keys.append("quiet: 1s, at-most: 3s") }
        if chance(6) { keys.append("needs-network: false") }
        if chance(4) { keys.append("metered: wait") }
        if chance(2) {
            let signals = StandardSignal.allCases.filter { _ in Int.random(in: 0..<2, using: &dice) == 0 }
            keys.append("on: [\(signals.map(\.rawValue).joined(separator: ", "))]")
        } else {
            keys.append("on: [start, network, resume, reload, foreground]")
        }
        let paths = Self.paths.filter { _ in Int.random(in: 0..<3, using: &dice) == 0 }
        if !paths.isEmpty { keys.append("files: [\(paths.joined(separator: ", "))]") }
        let interfaces = Self.interfaces.filter { _ in Int.random(in: 0..<3, using: &dice) == 0 }
        if !interfaces.isEmpty {
            keys.append("dbus: [\(interfaces.map { "{interface: \($0)}" }.joined(separator: ", "))]")
        }
        // Another way to the same origin: another product.
        let path = chance(4) ? bases(of: name)[1] : nil
        return pipeline(
            name, keys.joined(separator: ", "), url: path, pages: pages(of: name), check: "type: text/plain")
    }

    private func bases(of name: String) -> [String] { ["data", "other"].map { "https://\(name).example.com/\($0)" } }

    private func pages(of name: String) -> String { paged.contains(name) ? Pages.definition : "" }

    // MARK: The origins

    /// The origin works, also for further pages.
    private func everyPage(of name: String, at base: String, says text: String) {
        guard paged.contains(name) else {
            return machine.place.internet[base].answers(.content(text, type: "text/plain"))
        }
        for page in 1...Pages.count {
            let item = page == 1 ? text : "\(text) \(page)"
            machine.place.internet[Pages.url(of: page, at: base)].answers(
                .content(Pages.text(item, page: page, at: base), type: "text/plain"))
        }
    }

    /// The answer of a page of a pipeline's source from now on.
    private mutating func changeOrigin(_ name: String) {
        guard paged.contains(name) else { return machine.origin(name).answers(answer { $0 }) }
        let base = bases(of: name)[chance(4) ? 1 : 0]
        let page = chance(2) ? 1 : Int.random(in: 2...Pages.count, using: &dice)
        machine.place.internet[Pages.url(of: page, at: base)].answers(
            answer { Pages.text($0, page: page, at: base) })
    }

    /// - Parameter text: the text of an origin with good content.
    private mutating func answer(_ text: (String) -> String) -> ScriptedOrigin.Answer {
        // Versions come back: an old tag, and content that was published before.
        version += 1
        let number = version % 7
        let sound = ScriptedOrigin.Answer.version(text("good \(number)"), type: "text/plain", tag: "\"\(number)\"")
        switch Int.random(in: 0..<16, using: &dice) {
        case 0, 1: return down(retryAfter: .seconds(Int64.random(in: 1...4000, using: &dice)))
        case 2: return .fails(RunFailure(.refused, "403"))
        case 3: return .fails(RunFailure(.connection, "connection refused"))
        case 4: return .hangs(cleanUp: chance(2) ? .zero : .milliseconds(700))
        case 5: return .content("<html>captive</html>", type: "text/html")
        case 6, 7: return .after(seconds(0.001...60), sound)
        case 8: return .after(.seconds(2), down())
        case 9: return .after(seconds(0...5), .fails(RunFailure(.transient, "the body was cut short")))
        case 10: return .after(seconds(0...5), .fails(RunFailure(.connection, "connection reset by peer")))
        case 11: return .fails(RunFailure(.certificateDate, "not valid yet"))
        case 12: return .notModified
        case 13: return .content("", type: "text/plain")
        default: return sound
        }
    }

    // MARK: Events

    private mutating func step() throws {
        let name = pick(names, &dice)
        switch Int.random(in: 0..<37, using: &dice) {
        case 0, 1: try machine.network(nil)
        case 2, 3, 4: try machine.network(pick(Self.places, &dice))
        case 5: try machine.otherProtocol(chance(2))
        case 6, 7, 8: changeOrigin(name)
        case 9: machine.disk.isFull(chance(2))
        case 10: try machine.refresh(name)
        case 11: try machine.refresh(name, force: true)
        case 12:
            machine.flood(name, Int.random(in: 1...20, using: &dice))
            try machine.settle()
        case 13:
            machine.files["pipelines/\(name).yaml"] = chance(5) ? nil : file(name)
            if chance(5) { machine.files["freshet.yaml"] = daemonFile() }
            try machine.reload(configurationOnly: chance(2))
        case 14: try machine.reload()
        case 15: try restart()
        case 16: try machine.hold(name, chance(2))
        case 17, 18: try sleep()
        case 19: try machine.goesToSleep(chance(2))
        case 20: try machine.stepClock(by: .seconds(Int64.random(in: -90_000...90_000, using: &dice)))
        case 21, 22: try machine.file(pick(Self.paths, &dice), times: chance(4) ? 100 : 1)
        case 23, 24: try machine.bus(pick(Self.interfaces, &dice), times: chance(4) ? 100 : 1)
        case 25, 26: try people()
        case 27: try burst()
        case 28: machine.latency = chance(2) ? .zero : .milliseconds(Int64.random(in: 1...300, using: &dice))
        case 30, 31, 32:
            for _ in 0..<(chance(4) ? 3 : 1) {
                try machine.loadMore(pick(paged.isEmpty ? [name] : paged.sorted(), &dice))
            }
        // NetworkManager's numbers, and one that it does not use.
        case 33, 34: try machine.metered(.random(in: 0...5, using: &dice))
        case 29: try machine.pass(seconds(1...(chance(4) ? 7200 : 600)))
        default: try machine.pass(seconds(0...8))
        }
    }

    private mutating func people() throws {
        let id = pick(["1", "2"], &dice)
        let session = LoginSession(
            id: id, userID: 1000, userName: "alice", isActive: chance(2), isLocked: chance(2))
        switch Int.random(in: 0..<4, using: &dice) {
        case 0: try machine.session(id, nil)
        case 1: try machine.restartLogind { try machine.session(id, session) }
        default: try machine.session(id, session)
        }
    }

    /// All kinds of signals one after the other, for a while.
    private mutating func burst() throws {
        for _ in 0..<Int.random(in: 5...20, using: &dice) {
            switch Int.random(in: 0..<5, using: &dice) {
            case 0: try machine.network(nil)
            case 1: try machine.network(pick(Self.places, &dice))
            case 2: try machine.file(pick(Self.paths, &dice))
            case 3: try machine.bus(pick(Self.interfaces, &dice))
            default: try people()
            }
            try machine.pass(seconds(0...1.5))
        }
    }

    /// The lid is closed for a while; with or without logind, and with a network that comes late.
    private mutating func sleep() throws {
        if chance(2) { try machine.goesToSleep() }
        if chance(2) { try machine.pass(seconds(0...0.9)) }
        machine.sleep(chance(8) ? .milliseconds(300) : seconds(1...7200))
        if chance(8) { machine.place.clock.stepWall(by: .seconds(Int64.random(in: -60...60, using: &dice))) }
        try machine.wake(isAnnounced: chance(2))
        guard chance(2) else { return }
        try machine.pass(seconds(0...1.5))
        try machine.network(nil)
        try machine.pass(seconds(0.1...6))
        try machine.network("home")
    }

    private mutating func restart() throws {
        if chance(2) { try machine.stop() } else { try machine.crash() }
        if chance(2) { try machine.pass(seconds(1...600)) }
        if chance(4) { machine.sleep(seconds(1...7200)) }
        try machine.boot()
    }

    // MARK: Recovery

    private mutating func end() throws {
        let witness = machine.witness
        machine.disk.isFull(false)
        machine.latency = .zero
        machine.files["freshet.yaml"] = "concurrency: 2\n"
        for name in names {
            for base in bases(of: name) { everyPage(of: name, at: base, says: "good at last") }
            machine.files["pipelines/\(name).yaml"] = pipeline(
                name, "every: 1h", pages: pages(of: name), check: "type: text/plain")
            try machine.hold(name, false)
        }
        try machine.goesToSleep(false)
        try machine.reload()
        try machine.network("home")
        for name in names { try machine.refresh(name, force: true) }
        // Between two checks, since a further check would begin with the first page again.
        try machine.pass(.seconds(2 * 3600 + 600))
        for name in names {
            let status = machine.status(name)
            witness.expect(
                status?.activity == .loaded, "\(name) is not loaded in the end: \(String(describing: status))")
            witness.expect(status?.freshness == .fresh, "\(name) is not fresh in the end")
            witness.expect(
                Pages.items(of: machine.disk[name].text ?? "") == ["good at last"],
                "\(name) is not up to date in the end")
        }
        for name in paged.sorted() {
            for page in 2...Pages.count {
                try machine.loadMore(name)
                // The disk is as slow as it was at the last boot.
                try machine.pass(.seconds(10))
                witness.expect(
                    Pages.items(of: machine.disk[name].text ?? "").last == "good at last \(page)",
                    "\(name) has no page \(page) in the end: \(machine.disk[name].text ?? "")")
            }
        }
        witness.expect(
            witness.unansweredPageRequests == [],
            "\(witness.unansweredPageRequests) have unanswered page requests in the end")
        witness.expect(witness.unanswered == [], "\(witness.unanswered) are not answered in the end")
        witness.expect(machine.place.internet.open == 0, "requests are left in the end")
        witness.expect(machine.place.internet.mostOpen <= 3, "\(machine.place.internet.mostOpen) concurrent requests")
        witness.expect(machine.requestLimiter?.counts ?? (9, 9) == (0, 0), "permits are in use in the end")
        // One planned check each, and nothing else.
        let sleepers = machine.place.clock.manual.sleeperCount
        witness.expect(sleepers == names.count, "\(sleepers) timers of \(names.count) pipelines is what is left")
        weak let engine = machine.daemon?.engine
        try machine.stop()
        let left = machine.place.clock.manual.sleeperCount
        witness.expect(left == 0, "\(left) timers is what is left after the daemon")
        witness.expect(engine == nil, "the engine is left after the daemon")
    }
}
