import ConfigurationTestSupport
import FreshetConfiguration
import FreshetControl
import FreshetModel
import FreshetPipelines
import Testing

@testable import FreshetReplay

/// Microseconds.
private let second: Int64 = 1_000_000
/// The beginning of all recordings.
private let start: Int64 = 1_700_000_000 * second

/// Builds a recording, with times in seconds since its beginning.
struct Story {
    var recording: Recording

    init(minutes: Int64 = 60, pipelines: [String] = ["news"], every: Int64? = nil, generation: Int64? = nil) {
        recording = Recording(
            header: .init(since: start, until: start + minutes * 60 * second))
        recording.pipelines = pipelines.map {
            .init(
                name: $0, source: "https://a.example/", signals: ["network", "start"],
                everyUSec: every.map { $0 * second }, generation: generation)
        }
        recording.sources = ["network", "start", "resume", "metered", "reload"].map {
            .init(name: $0, fact: "reachable")
        }
    }

    mutating func signal(_ name: String, at time: Double, detail: String? = nil) {
        recording.events.append(.signal(name, number: 1, detail: detail, at: instant(time)))
    }

    mutating func fact(_ signal: String, _ fact: String, at time: Double) {
        recording.events.append(.fact(signal, fact, at: instant(time)))
    }

    mutating func run(
        _ number: Int64, at time: Double, lasts: Double = 0.5, _ outcome: FreshetControl.RunOutcome = .unchanged,
        generation: Int64? = 1, causes: [String] = ["network"], failure kind: String? = nil, of name: String = "news"
    ) {
        var run = RunStatus(
            number: number, started: instant(time),
            causes: causes.map { CauseStatus(signal: $0, first: instant(time), last: instant(time)) },
            durationUSec: Int64(lasts * 1e6), outcome: outcome, generation: generation)
        run.failureKind = kind
        run.requests = 1
        recording.events.append(.runEnded(run, of: name, at: instant(time + lasts)))
    }

    private func instant(_ time: Double) -> Int64 { start + Int64(time * 1e6) }

    /// Replays it with a configuration, through the text of its file.
    func replayed(_ configuration: [String: String]) throws -> ReplayResult {
        var recording = recording
        recording.events.sort { $0.at < $1.at }
        let read = try RecordingReader.read(Array(recording.text.utf8), file: "day.freshet")
        var texts: [String: String] = [:]
        for (name, refresh) in configuration {
            texts["/etc/freshet/pipelines/\(name).yaml"] =
                "source: {url: 'https://a.example/\(name)'}\nrefresh: {\(refresh)}\ncache: {file: \(name)}\n"
        }
        let loaded = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/etc/freshet"]), fileSystem: InMemoryFileSystem(texts: texts)
        ).load()
        #expect(loaded.isValid, "\(loaded.diagnostics)")
        let pipelines = loaded.pipelines.map { definition in
            ReplayedPipeline(
                definition,
                signals: Set(definition.refresh.on.map(\.rawValue) + definition.refresh.after.map { "pipeline \($0)" }),
                network: "network", share: 0.5)
        }
        let replay = Replay(pipelines, limits: loaded.daemon.requestLimits)
        let executor = ReplayExecutor()
        let outcome = Outcome()
        Task(executorPreference: executor) {
            do {
                outcome.result = .success(try await replay.run(read, on: executor))
            } catch {
                outcome.result = .failure(error)
            }
        }
        executor.run()
        return try #require(outcome.result).get()
    }
}

/// `@unchecked Sendable`: the executor runs its tasks on the thread of the test.
private final class Outcome: @unchecked Sendable {
    var result: Result<ReplayResult, any Error>?
}

extension ReplayResult {
    /// The starts of the replayed runs of a pipeline, in seconds since the beginning, rounded to tenths.
    func starts(of name: String = "news") -> [Double] {
        (pipelines.first { $0.name == name }?.replayed.runs ?? []).map {
            (Double($0.started - start) / 1e5).rounded() / 10
        }
    }

    func outcomes(of name: String = "news") -> [String] {
        (pipelines.first { $0.name == name }?.replayed.runs ?? []).map(\.outcome)
    }
}

@Suite("Replay")
struct ReplayTests {
    private func flaps() -> Story {
        var story = Story(minutes: 10)
        story.signal("start", at: 1)
        story.run(1, at: 1, .changed, causes: ["start"])
        for time in [100.0, 106, 112, 118] {
            story.fact("network", "not reachable: no route", at: time - 2)
            story.signal("network", at: time, detail: "via 192.0.2.1 on wan0")
            story.fact("network", "reachable via 192.0.2.1 on wan0", at: time + 0.001)
            story.run(2, at: time)
        }
        return story
    }

    @Test("with the configuration of the recording, the same runs start at the same times")
    func same() throws {
        let result = try flaps().replayed(["news": "on: [start, network], quiet: 2s, fresh-for: 0"])
        #expect(result.starts() == [1, 100, 106, 112, 118])
        #expect(result.outcomes() == ["changed", "unchanged", "unchanged", "unchanged", "unchanged"])
        #expect(result.recorded.runs == 5 && result.replayed.runs == 5)
        #expect(result.recorded.requests == 5 && result.replayed.requests == 5)
        #expect(result.pipelines.first?.replayed.runs.first?.causes == "start")
        #expect(result.pipelines.first?.replayed.runs.first?.durationUSec == 500_000)
        #expect(result.notes == [])
    }

    @Test("a longer quiet period merges a burst into fewer runs")
    func quiet() throws {
        let result = try flaps().replayed(["news": "on: [start, network], quiet: 10s, at-most: 1min, fresh-for: 0"])
        #expect(result.starts() == [1, 100, 128])
        #expect(result.replayed.requests == 3)
        #expect(result.pipelines.first?.replayed.runs.last?.causes == "network (3)")
    }

    @Test("a shorter interval runs more often, and finds each new content once")
    func every() throws {
        var story = Story(every: 900, generation: 3)
        for (number, time) in [600.0, 1500, 2400, 3300].enumerated() {
            story.run(
                Int64(number) + 8, at: time, number == 1 ? .changed : .unchanged, generation: number == 0 ? 2 : 3,
                causes: ["timer"])
        }
        let same = try story.replayed(["news": "every: 15min"])
        #expect(same.starts() == [600, 1500.5, 2401, 3301.5])
        #expect(same.outcomes() == ["unchanged", "changed", "unchanged", "unchanged"])
        let more = try story.replayed(["news": "every: 5min"])
        #expect((12...13).contains(more.replayed.runs), "\(more.starts())")
        #expect(more.replayed.changed == 1)
        #expect(more.recorded.changed == 1)
    }

    @Test("the first fact of a daemon that starts within the recording is not a change of the network")
    func firstFact() throws {
        var story = Story(minutes: 10)
        story.signal("start", at: 100)
        story.fact("network", "reachable via 192.0.2.1 on wan0", at: 100.1)
        story.run(1, at: 100, .changed, causes: ["start"])
        let result = try story.replayed(["news": "on: [start, network]"])
        #expect(result.starts() == [100])
        #expect(result.outcomes() == ["changed"])
    }

    @Test("a pipeline that was held before the recording does not run until it is released")
    func heldBefore() throws {
        var story = Story(minutes: 10, generation: 1)
        story.recording.events.append(.state(.held, of: "news", at: start - second))
        story.signal("network", at: 10, detail: "via 192.0.2.1")
        story.recording.events.append(.state(.loaded, of: "news", at: start + 200 * second))
        let result = try story.replayed(["news": "on: [network], fresh-for: 0"])
        #expect(result.starts().filter { $0 < 200 } == [])
    }

    @Test("a recorded failure fails the runs near it, which are retried with backoff")
    func failure() throws {
        var story = Story(minutes: 10)
        story.signal("start", at: 1)
        story.run(1, at: 1, .failed, generation: nil, causes: ["start"], failure: "transient")
        story.run(2, at: 3, .failed, generation: nil, causes: ["start"], failure: "transient")
        story.run(3, at: 60, .changed, causes: ["start"])
        let result = try story.replayed(["news": "on: [start]"])
        #expect(result.outcomes().dropLast().allSatisfy { $0 == "failed" })
        #expect(result.outcomes().last == "changed")
        // Fewer attempts with a longer backoff.
        let patient = try story.replayed(["news": "on: [start], retry: {from: 2min, to: 2min}"])
        #expect(patient.outcomes().count < result.outcomes().count)
    }

    @Test("while the network is not reachable, runs wait as in the daemon")
    func network() throws {
        var story = Story(minutes: 10)
        story.fact("network", "not reachable: no route", at: 10)
        story.signal("start", at: 20)
        story.signal("network", at: 300, detail: "via 192.0.2.1")
        story.fact("network", "reachable via 192.0.2.1", at: 300.002)
        story.run(1, at: 300, .changed, causes: ["start", "network"])
        let result = try story.replayed(["news": "on: [start, network]"])
        #expect(result.starts().first == 300)
        #expect(result.replayed.runs == 1)
        // A pipeline that does not need the network does not wait.
        let free = try story.replayed(["news": "on: [start], needs-network: false"])
        #expect(free.starts() == [20])
    }

    @Test("no timer expires while the machine sleeps; after the wake, an overdue check runs once")
    func sleep() throws {
        var story = Story(every: 600, generation: 1)
        story.run(5, at: 100, causes: ["timer"])
        story.fact("resume", "going to sleep", at: 300)
        story.signal("resume", at: 2400, detail: "slept")
        story.fact("resume", "awake, after 2095.0 s of sleep", at: 2400.1)
        story.run(6, at: 2400, causes: ["resume", "timer"])
        let result = try story.replayed(["news": "on: [resume], every: 10min"])
        #expect(result.starts().filter { $0 > 300 && $0 < 2400 } == [])
        #expect(result.starts().count { $0 >= 2400 && $0 < 2410 } == 1, "\(result.starts())")
    }

    @Test("nothing runs in a gap, and a note says so")
    func gap() throws {
        var story = Story(every: 60, generation: 1)
        story.run(5, at: 30, causes: ["timer"])
        story.recording.gaps = [.init(from: start + 100 * second, to: start + 3000 * second)]
        let result = try story.replayed(["news": "every: 1min"])
        #expect(result.starts().filter { $0 > 100.5 && $0 < 3000 } == [])
        #expect(result.notes.contains { $0.contains("no timer expires") })
    }

    @Test("a metered connection delays the runs of a pipeline that waits for an unmetered one")
    func metered() throws {
        var story = Story(minutes: 10)
        story.fact("metered", "metered", at: 5)
        story.signal("start", at: 10)
        story.run(1, at: 10, .changed, causes: ["start"])
        story.fact("metered", "not metered", at: 200)
        #expect(try story.replayed(["news": "on: [start]"]).starts() == [10])
        #expect(try story.replayed(["news": "on: [start], metered: wait"]).starts() == [200])
    }

    @Test("a pipeline runs after the replayed commits of another, not after the recorded ones")
    func after() throws {
        var story = Story(minutes: 10, pipelines: ["news", "page"])
        story.signal("start", at: 1)
        story.run(1, at: 1, .changed, causes: ["start"])
        story.run(1, at: 1.5, .changed, causes: ["pipeline"], of: "page")
        let after = "on: [], after: [news], quiet: 0s"
        let result = try story.replayed(["news": "on: [start]", "page": after])
        #expect(result.starts(of: "page") == [1.5])
        #expect(try story.replayed(["news": "on: [network]", "page": after]).starts(of: "page") == [])
    }

    @Test("requests of the operator are repeated, and a hold too")
    func operators() throws {
        var story = Story(minutes: 10, generation: 1)
        story.run(4, at: 60, causes: ["operator"])
        story.recording.events.append(.state(.held, of: "news", at: start + 100 * second))
        story.signal("network", at: 120, detail: "via 192.0.2.1")
        story.fact("network", "reachable via 192.0.2.1", at: 120)
        story.recording.events.append(.state(.loaded, of: "news", at: start + 200 * second))
        let result = try story.replayed(["news": "on: [network], fresh-for: 0"])
        #expect(result.starts().first == 60)
        #expect(result.starts().filter { $0 > 100 && $0 < 200 } == [])
    }

    @Test("notes name pipelines and signals that the recording or the configuration does not have")
    func notes() throws {
        let result = try flaps().replayed(["other": "on: [foreground]"])
        #expect(
            result.notes == [
                "news is not in this configuration, so it does not run.",
                "other has no recorded run: each run takes 200 ms and succeeds with one request.",
                "The recording has no signal 'foreground': no pipeline subscribed to it then.",
            ])
        #expect(result.pipelines.map(\.name) == ["news", "other"])
        #expect(result.recorded.runs == 5 && result.replayed.runs == 0)
    }

    @Test("the same recording and configuration give the same result")
    func repeatable() throws {
        var story = flaps()
        story.run(9, at: 200, .failed, failure: "connection")
        let configuration = ["news": "on: [start, network], every: 30s"]
        #expect(try story.replayed(configuration) == story.replayed(configuration))
    }

    @Test("the text has a table and a timeline of both sides")
    func text() throws {
        let result = try flaps().replayed(["news": "on: [start, network], quiet: 10s, at-most: 1min, fresh-for: 0"])
        let lines = ReplayText(result) { _ in 3600 }.lines
        #expect(lines[0] == "2023-11-14 23:13:20 to 2023-11-14 23:23:20")
        #expect(lines[2] == "PIPELINE  RECORDED  REPLAYED  REQUESTS     CHANGED  FAILED")
        #expect(lines[3] == "news      5 runs    3 runs    5 -> 3 (-2)  1        0")
        #expect(lines[6] == "  recorded  |1.........22................................................|")
        #expect(lines[7] == "  replayed  |1.........1.1...............................................|")
        #expect(lines.last == "  replayed  23:15:28  unchanged after 500 ms: network (3)")
    }
}
