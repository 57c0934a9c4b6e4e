import FreshetEventLoop
import FreshetHelper
import FreshetJQ
import FreshetPipelines
import Glibc
import TestSupport
import Testing

@testable import FreshetEmitters

/// With real helper processes: the daemon's executable, which is in the same directory as the tests.
@Suite("jq in helper processes: limits, cancellation and isolation")
struct JQTransformerTests {
    let running: RunningLoop
    let workers = WorkerPool()
    let helper: ChildProcess.Command
    let transformer: JQTransformer

    init() throws {
        running = try RunningLoop()
        helper = try JQTransformer.realHelper()
        transformer = JQTransformer(
            running.loop, workers: workers, helper: helper, warmth: JQTransformer.lastingWarmth)
    }

    func transform(_ input: String, by program: String) async throws(FetchError) -> String {
        String(decoding: try await transformer.transform(Array(input.utf8), by: program), as: UTF8.self)
    }

    @Test("a program returns its outputs, and a predicate is true or false")
    func outputs() async throws {
        #expect(try await transform(#"{"keys":[{"a":1},{"a":2}]}"#, by: ".keys[].a") == "1\n2\n")
        #expect(try await transformer.holds(".keys | length > 0", for: Array(#"{"keys":[1]}"#.utf8)))
        #expect(try await !transformer.holds(".keys | length > 0", for: Array(#"{"keys":[]}"#.utf8)))
        #expect(await transformer.idleHelpers == 1)
    }

    @Test("a program can be compiled without running")
    func compiling() async throws {
        #expect(try await transformer.error(in: ".keys | length > 0") == nil)
        #expect(try await transformer.error(in: "error") == nil)
        #expect(try #require(try await transformer.error(in: ".a | bar(")).contains("syntax error"))
        #expect(try #require(try await transformer.error(in: "nonsense")).contains("nonsense/0 is not defined"))
        #expect(await transformer.idleHelpers == 1)
    }

    @Test(
        "times are UTC in every time zone of the machine, also in summer",
        .enabled(if: SummerTime.isAvailable, "needs root, unshare(1) and the zones of tzdata"))
    func zone() async throws {
        let script = #"mount --bind "$1" /etc/localtime && exec "$2" "$3""#
        let abroad = JQTransformer(
            running.loop, workers: workers,
            helper: ChildProcess.Command(
                path: "/usr/bin/unshare",
                arguments: ["-m", "/bin/sh", "-c", script, "sh", SummerTime.zone, helper.path] + helper.arguments,
                environment: JQHelper.environment.merging(["PATH": "/usr/bin:/bin"]) { $1 }))
        let times = ["2026-01-15T12:00:00Z", "2026-07-15T12:00:00Z"]
        let program =
            #"map(fromdate | ., todate, (localtime | .[3])), map(strptime("%Y-%m-%dT%H:%M:%SZ") | mktime)"#
        let output = try await abroad.transform(Array("\(times)".utf8), by: program)
        #expect(
            String(decoding: output, as: UTF8.self) == """
                [1768478400,"2026-01-15T12:00:00Z",12,1784116800,"2026-07-15T12:00:00Z",12]
                [1768478400,1784116800]

                """)
    }

    @Test("a large input and a large output are transferred completely")
    func large() async throws {
        let items = (0..<200_000).map { "{\"number\":\($0)}" }.joined(separator: ",")
        let output = try await transform("[\(items)]", by: "map(.number)")
        #expect(output == "[\((0..<200_000).map { "\($0)" }.joined(separator: ","))]\n")
    }

    @Test("a program cannot use the environment, files or other input")
    func isolation() async throws {
        #expect(try await transform("1", by: "[env, $ENV]") == #"[{"TZ":"UTC0"},{"TZ":"UTC0"}]"# + "\n")
        let failure = try await failureOf { () async throws(FetchError) in
            try await transform("1", by: "import \"passwd\" as $x {search: \"/etc\"}; $x")
        }
        #expect(failure.kind == .content && failure.message.contains("is not available"))
        let other = try await failureOf { () async throws(FetchError) in try await transform("1", by: "input") }
        #expect(other.kind == .content)
    }

    @Test(
        "an error of a program or its input is a failure of the content with a reason",
        arguments: [
            ("1", ".a |", "the jq program is not valid"), ("1", ".a", "the jq program failed"),
            ("<html>", ".", "is not JSON"),
            ("1", "repeat(\"x\" * 1000)", "exceeds the limit of 100,000 bytes"),
            ("1", "error(\"a\\u001b[2J\")", "\\u{1b}"),
        ])
    func failures(_ input: String, _ program: String, _ words: String) async throws {
        let small = JQTransformer(
            running.loop, workers: workers, helper: helper, maxOutput: 100_000,
            warmth: JQTransformer.lastingWarmth)
        let failure = try await failureOf { () async throws(FetchError) in
            try await small.transform(Array(input.utf8), by: program)
        }
        #expect(failure.kind == .content)
        #expect(failure.message.contains(words))
        // The helper can be used again.
        #expect(await small.idleHelpers == 1)
    }

    @Test("a program that uses too much memory ends its helper, and the next request gets a new helper")
    func memory() async throws {
        let failure = try await failureOf { () async throws(FetchError) in
            try await transform("1", by: "[range(1e9)] | length")
        }
        #expect(failure.kind == .content)
        #expect(failure.message.hasPrefix("the jq program ran out of memory or crashed"))
        #expect(try await transform("1", by: ".") == "1\n")
    }

    @Test(
        "a failure for too much processor time names the program or the format",
        arguments: BinaryForm.allCases)
    func tooLong(_ form: BinaryForm) async throws {
        // The kernel sends this signal to a helper that has used up its processor time.
        let helper = ChildProcess.Command(path: "/bin/sh", arguments: ["-c", "kill -XCPU $$"])
        let late = JQTransformer(running.loop, workers: workers, helper: helper)
        let program = try await failureOf { () async throws(FetchError) in try await late.transform([0x31], by: ".") }
        #expect(program.message == "the jq program took more than 60 s of processor time")
        let check = try await failureOf { () async throws(FetchError) in try await late.items(of: [0x31], as: form) }
        #expect(
            check.message.hasPrefix("validating the content as ")
                && check.message.hasSuffix("took more than 60 s of processor time"))
    }

    @Test("an endless program is killed when its task is cancelled; other requests are not affected")
    func endless() async throws {
        let endless = Task(executorPreference: running.loop) { () async throws(FetchError) in
            try await transform("1", by: "last(repeat(1))")
        }
        #expect(await eventually { await transformer.runningHelpers == 1 })
        #expect(try await transform("[1]", by: ".[0]") == "1\n")
        #expect(await transformer.runningHelpers == 1)
        endless.cancel()
        let result = await endless.result
        #expect(throws: FetchError.cancelled) { try result.get() }
        #expect(await transformer.runningHelpers == 0)
        #expect(await transformer.idleHelpers == 1)
    }

    private func endless(_ count: Int) -> [Task<[UInt8], any Error>] {
        (1...UInt64(count)).map { pipeline in
            let share = transformer.share(of: pipeline)
            return Task(executorPreference: running.loop) {
                try await share.transform(Array("1".utf8), by: "last(repeat(1))", variables: [])
            }
        }
    }

    private func end(_ tasks: [Task<[UInt8], any Error>]) async {
        for task in tasks { task.cancel() }
        for task in tasks {
            let result = await task.result
            #expect(throws: FetchError.cancelled) { try result.get() }
        }
        #expect(await transformer.runningHelpers == 0)
        #expect(await transformer.waitingRequests == 0)
    }

    @Test("the endless programs of 50 pipelines do not block another pipeline's program", .hangLimit)
    func fairness() async throws {
        let endless = endless(50)
        #expect(await eventually { await transformer.waitingRequests > 40 })
        for number in 0..<5 {
            let share = transformer.share(of: 51)
            let output = try await share.transform(Array("\(number)".utf8), by: ".", variables: [])
            #expect(output == Array("\(number)\n".utf8))
        }
        // All endless programs continue: evicted programs start again.
        #expect(await transformer.waitingRequests + transformer.runningHelpers == 50)
        await end(endless)
    }

    @Test("a long program finishes beside endless programs, although it may start again", .hangLimit)
    func longPrograms() async throws {
        let endless = endless(8)
        #expect(await eventually { await transformer.waitingRequests >= 5 })
        let share = transformer.share(of: 9)
        // The program needs more than the first time slice.
        let output = try await share.transform(
            Array("1".utf8), by: "last(range(500000))", variables: [])
        #expect(output == Array("499999\n".utf8))
        await end(endless)
    }

    @Test("waiting requests can be cancelled, and later requests are answered", .hangLimit)
    func queue() async throws {
        let endless = endless(8)
        #expect(await eventually { await transformer.waitingRequests >= 5 })
        await end(endless)
        #expect(try await transform("2", by: ".") == "2\n")
    }

    @Test("a request that exceeds the protocol's limits fails before a helper gets it")
    func tooLarge() async throws {
        let program = String(repeating: " ", count: HelperRequest.maxProgram)
        #expect(try await transform("1", by: program.dropLast() + ".") == "1\n")
        let failure = try await failureOf { () async throws(FetchError) in try await transform("1", by: program + ".") }
        #expect(failure.kind == .content)
    }

    @Test("a program that is not a helper causes a failure, not a hang")
    func noHelper() async throws {
        for (path, kind) in [("/bin/true", RunFailure.Kind.content), ("/bin/cat", .content), ("/nonexistent", .local)] {
            let broken = JQTransformer(
                running.loop, workers: workers,
                helper: ChildProcess.Command(path: path))
            let failure = try await failureOf { () async throws(FetchError) in
                try await broken.transform([0x31], by: ".")
            }
            #expect(failure.kind == kind)
        }
    }

    @Test("a helper without work is ended, and a new request starts a new helper")
    func cooling() async throws {
        let brief = JQTransformer(running.loop, workers: workers, helper: helper, warmth: .milliseconds(1))
        #expect(try await brief.transform([0x31], by: "[., $__loc__.line]") == Array("[1,1]\n".utf8))
        #expect(await eventually { await brief.idleHelpers == 0 })
        #expect(await eventually { await brief.endingHelpers == 0 })
        #expect(try await brief.holds(".", for: [0x31]))
    }

    @Test("a warm helper that was killed is replaced")
    func killedWarm() async throws {
        #expect(try await transform("1", by: ".") == "1\n")
        let process = try #require(await transformer.warmIdentifiers.first)
        endProcess(process)
        #expect(await eventually { !isRunning(Int(process)) })
        #expect(try await transform("2", by: ".") == "2\n")
        #expect(await transformer.warmIdentifiers != [process])
    }

    @Test("a warm helper whose end the loop has not received yet is replaced")
    func endNotReceived() async throws {
        #expect(try await transform("1", by: ".") == "1\n")
        #expect(try await transformer.afterDeathOfWarm(transforming: "2") == "2\n")
    }
}

/// A time zone with summer time for one process: a mount replaces the machine's /etc/localtime.
private enum SummerTime {
    static let zone = "/usr/share/zoneinfo/Europe/Berlin"

    static var isAvailable: Bool {
        geteuid() == 0 && access(zone, R_OK) == 0 && access("/usr/bin/unshare", X_OK) == 0
    }
}

extension JQTransformer {
    /// Kills the warm helper and immediately makes a request, so that the loop receives the end of the helper
    /// afterwards.
    fileprivate func afterDeathOfWarm(transforming input: String) async throws -> String {
        let process = try #require(warmIdentifiers.first)
        endProcess(process)
        while isRunning(Int(process)) { sched_yield() }
        return String(decoding: try await transform(Array(input.utf8), by: "."), as: UTF8.self)
    }
}
