import ControlTestSupport
import FreshetControl
import FreshetEventLoop
import Glibc
import TestSupport
import Testing

@testable import FreshetVarlink

@Suite(.serialized, .hangLimit) struct ControlDispatcherTests {
    @Test("a client reads the daemon, its pipelines and its signals")
    func reading() async throws {
        let service = ScriptedService()
        service.change { $0.signals = [SignalStatus(name: "network", fact: "reachable", fired: 2, lastFired: 7)] }
        try await withControlServer(service, rights: strangerRights) { path in
            let client = try ControlClient(path: path)
            let daemon = try client.daemon()
            #expect(daemon.pid == 42 && daemon.pipelines.total == 2 && daemon.pipelines.loaded == 2)
            #expect(try client.pipelines().map(\.name) == ["catalogue", "jwks"])
            #expect(try client.pipelines(["jwks", "jwks"]).map(\.name) == ["jwks"])
            #expect(try client.generation(of: "jwks").path == "/current/jwks.json")
            #expect(try client.signals().first?.fired == 2)
        }
    }

    @Test("the client gives up a daemon that does not answer, and waits for a daemon that works")
    func silence() async throws {
        let directory = try TemporaryDirectory()
        let listener = try VarlinkListener(path: directory.path("s"))
        defer { listener.close() }
        let silent = try ControlClient(
            path: directory.path("s"), silence: .milliseconds(2), probeTimeout: .milliseconds(2))
        #expect(throws: ControlClient.Failure.notAnswering) { try silent.daemon() }

        // The notice comes before that, and once.
        var notices = 0
        let noticing = try ControlClient(
            path: directory.path("s"), silence: .milliseconds(50), probeTimeout: .milliseconds(50),
            notice: ControlClient.Notice(after: .milliseconds(1)) { notices += 1 })
        #expect(throws: ControlClient.Failure.notAnswering) { try noticing.daemon() }
        #expect(notices == 1)

        // A daemon that closes further connections because of its limit counts as working.
        let crowded = try VarlinkListener(path: directory.path("t"))
        defer { crowded.close() }
        let listeningSocket = crowded.descriptor.rawValue
        @Sendable func next(within milliseconds: Int32) -> Int32? {
            var entry = pollfd(fd: listeningSocket, events: Int16(POLLIN), revents: 0)
            return poll(&entry, 1, milliseconds) == 1 ? accept(listeningSocket, nil, nil) : nil
        }
        let asking = Task.detached {
            try ControlClient(path: directory.path("t"), silence: .milliseconds(2), probeTimeout: .seconds(30))
                .logLevel()
        }
        let first = try #require(next(within: testTimeoutMilliseconds))
        defer { close(first) }
        for _ in 0..<3 { close(try #require(next(within: testTimeoutMilliseconds))) }
        let turningAway = Task.detached {
            while !Task.isCancelled { if let another = next(within: 5) { close(another) } }
        }
        _ = Array("{\"parameters\":{\"level\":\"info\"}}\0".utf8).withUnsafeBytes {
            send(first, $0.baseAddress, $0.count, 0)
        }
        #expect(try await asking.value == .info)
        turningAway.cancel()
        await turningAway.value

        let service = ScriptedService()
        // Longer than the client waits before it checks whether the daemon answers.
        service.change { $0.beforeRefresh = { _ in usleep(50_000) } }
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path, silence: .milliseconds(2), probeTimeout: .seconds(30))
            var names: [String] = []
            try client.refresh(.init(names: ["jwks"], wait: true)) { names.append($0.name) }
            #expect(names == ["jwks"])
        }
    }

    @Test("many pipelines are sent in several replies if the client accepts them")
    func batches() async throws {
        let limit = ControlDispatcher.pipelinesPerReply
        for (count, replies) in [(limit, 1), (limit + 1, 2), (3 * limit, 3)] {
            let names = (0..<count).map { "p\($0 + 10_000)" }
            try await withControlServer(ScriptedService(names)) { path in
                let client = try VarlinkClient(path: path)
                var sizes: [Int] = []
                try client.callMore(ControlInterface.name + ".List") { reply in
                    sizes.append((try? reply.decode(as: ControlMessage.Pipelines.self).pipelines.count) ?? 0)
                    return true
                }
                #expect(sizes.count == replies && sizes.reduce(0, +) == count)
                let whole = try client.call(ControlInterface.name + ".List")
                #expect(try whole.decode(as: ControlMessage.Pipelines.self).pipelines.count == count)
            }
        }
    }

    @Test("a name that does not exist is refused with a suggestion, and nothing is started")
    func unknownName() async throws {
        let service = ScriptedService()
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            let refusal = ControlClient.Failure.refused(.noSuchPipeline(name: "jkws", suggestion: "jwks"))
            #expect(throws: refusal) { try client.pipelines(["jkws"]) }
            #expect(throws: refusal) { try client.generation(of: "jkws") }
            #expect(throws: refusal) { try client.refresh(.init(names: ["catalogue", "jkws"])) { _ in } }
            #expect(throws: refusal) { try client.monitor(["jkws"]) { _ in true } }
            #expect(throws: ControlClient.Failure.refused(.noSuchPipeline(name: "zzz", suggestion: nil))) {
                try client.generation(of: "zzz")
            }
            // The file of this pipeline exists, but is not in the active configuration.
            service.change { $0.inactiveFiles = ["new": "/etc/freshet/pipelines/new.yaml"] }
            let new = ControlError.noSuchPipeline(
                name: "new", suggestion: nil, file: "/etc/freshet/pipelines/new.yaml")
            #expect(throws: ControlClient.Failure.refused(new)) { try client.generation(of: "new") }
        }
        #expect(service.asked.isEmpty)
    }

    @Test("the cost of a call that names pipelines does not depend on the number of other pipelines")
    func namedAlone() async throws {
        let service = ScriptedService()
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            try client.refresh(.init(names: ["jwks"], wait: true)) { _ in }
            _ = try client.generation(of: "jwks")
            _ = try client.pipelines(["jwks", "catalogue"])
            #expect(service.allNamesAsked == 0)
            _ = try client.pipelines(nil)
            #expect(service.allNamesAsked == 1)
        }
    }

    @Test("refresh starts each named pipeline once, or all pipelines")
    func refresh() async throws {
        let service = ScriptedService()
        service.change { $0.refresh["jwks"] = .success(RefreshResult(name: "jwks", outcome: .changed, generation: 4)) }
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            var results: [RefreshResult] = []
            try client.refresh(.init(names: ["jwks", "jwks"], wait: true, force: true)) { results.append($0) }
            #expect(results == [RefreshResult(name: "jwks", outcome: .changed, generation: 4)])
            #expect(service.asked == ["refresh jwks wait force"])
            try client.refresh(.init(names: ["jwks"], unconditional: true)) { _ in }
            #expect(service.asked.last == "refresh jwks unconditional")
            results = []
            try client.refresh(.init(all: true, wait: true)) { results.append($0) }
            #expect(Set(results.map(\.name)) == ["catalogue", "jwks"])
        }
    }

    @Test("parameters are passed to the service, and its refusals reach the client unchanged")
    func parameters() async throws {
        let service = ScriptedService()
        let status = ParameterStatus(
            name: "language", value: "de", default: "en", isSet: true, choices: ["en", "de"], quietUSec: 300_000)
        service.change { script in
            script.pipelines["jwks"]?.parameters = [status]
            script.parameters = .success(.init(changed: ["language"], parameters: [status]))
        }
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            #expect(try client.pipelines(["jwks"]).first?.parameters == [status])
            let settings = [ParameterSetting("language", "de"), ParameterSetting("query", nil)]
            let reply = try client.setParameters(.init(name: "jwks", settings: settings))
            #expect(reply == .init(changed: ["language"], parameters: [status]))
            _ = try client.setParameters(.init(name: "jwks", settings: [], othersToDefault: true))
            let caller = "user \(geteuid()), process \(getpid())"
            #expect(
                service.asked == [
                    "set jwks language=de query=default for \(caller)", "set jwks others=default for \(caller)",
                ])
            #expect(throws: ControlClient.Failure.refused(.noSuchPipeline(name: "jkws", suggestion: "jwks"))) {
                try client.setParameters(.init(name: "jkws", settings: []))
            }
            // It would be unclear which of the two values counts.
            #expect(throws: ControlClient.Failure.refused(.invalidParameter("settings"))) {
                try client.setParameters(.init(name: "jwks", settings: settings + settings))
            }
            #expect(service.asked.count == 2)
            let refusal = ControlError.parametersRefused(
                name: "jwks", refusals: [.init(parameter: "language", reason: "has to be one of en, de")])
            service.change { $0.parameters = .failure(refusal) }
            #expect(throws: ControlClient.Failure.refused(refusal)) {
                try client.setParameters(.init(name: "jwks", settings: settings))
            }
        }
    }

    @Test("a refresh that waits for the network reports the reason, only for named pipelines")
    func refreshWaits() async throws {
        let service = ScriptedService()
        let (hintReceived, signalHint) = AsyncStream<Void>.makeStream()
        service.change { script in
            script.beforeRefresh = { [weak service] name in
                func publish(_ name: String, _ detail: String?) {
                    service?.events.publish(
                        .state(.waiting, of: name, waitingFor: .network, detail: detail, at: 1))
                }
                publish("catalogue", "not requested")
                publish(name, nil)
                publish(name, "the portal")
                var hints = hintReceived.makeAsyncIterator()
                await hints.next()
            }
        }
        try await withControlServer(service) { path in
            var hints: [WaitingHint] = []
            var results: [String] = []
            try ControlClient(path: path).refresh(.init(names: ["jwks"], wait: true)) {
                results.append($0.name)
            } waiting: { hint in
                hints.append(hint)
                signalHint.yield()
            }
            #expect(hints == [WaitingHint(name: "jwks", reason: "the portal")])
            #expect(results == ["jwks"])
        }
    }

    @Test("a refresh without names and all, or with both, is an invalid request")
    func refreshOfNothing() async throws {
        try await withControlServer(ScriptedService()) { path in
            let client = try ControlClient(path: path)
            for request in [ControlMessage.Refresh(), .init(names: []), .init(names: ["jwks"], all: true)] {
                #expect(throws: ControlClient.Failure.refused(.invalidParameter("names"))) {
                    try client.refresh(request) { _ in }
                }
            }
        }
    }

    @Test("TryLater is the error for one pipeline, and a part of the results for several pipelines")
    func tryLater() async throws {
        let hint = TryLaterHint(reason: "Retry-After", until: 9)
        for refusal in [
            Result<RefreshResult, ControlError>.failure(.tryLater(hint)),
            .success(RefreshResult(name: "jwks", tryLater: hint)),
        ] {
            let service = ScriptedService()
            service.change { $0.refresh["jwks"] = refusal }
            try await withControlServer(service) { path in
                let client = try ControlClient(path: path)
                #expect(throws: ControlClient.Failure.refused(.tryLater(hint))) {
                    try client.refresh(.init(names: ["jwks"])) { _ in }
                }
                var results: [RefreshResult] = []
                try client.refresh(.init(all: true)) { results.append($0) }
                #expect(results == [RefreshResult(name: "catalogue"), RefreshResult(name: "jwks", tryLater: hint)])
            }
        }
    }

    @Test("a caller without rights is refused before anything else is checked")
    func rights() async throws {
        let service = ScriptedService()
        try await withControlServer(service, rights: strangerRights) { path in
            let client = try ControlClient(path: path)
            #expect(throws: ControlClient.Failure.refused(.permissionDenied)) {
                try client.refresh(.init(names: ["none"])) { _ in }
            }
            #expect(throws: ControlClient.Failure.refused(.permissionDenied)) { try client.reload() }
        }
        #expect(service.asked.isEmpty)
    }

    @Test("reload reports the changes, or the errors with their places")
    func reload() async throws {
        let service = ScriptedService()
        let error = ConfigurationDiagnostic(file: "jwks.yaml", line: 3, column: 7, message: "unknown key 'evry'")
        service.change {
            $0.reload = .success(ReloadSummary(added: ["new"], unchanged: 2))
            $0.warnings = [ConfigurationDiagnostic(severity: .warning, file: "a.yaml", message: "unreadable")]
        }
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            let reloaded = try client.reload(configurationOnly: true)
            #expect(reloaded.summary.added == ["new"] && reloaded.diagnostics.count == 1)
            service.change { $0.reload = .failure(.configurationRefused([error])) }
            #expect(throws: ControlClient.Failure.refused(.configurationRefused([error]))) { try client.reload() }
        }
        #expect(service.asked == ["freshetctl reload configurationOnly", "freshetctl reload"])
    }

    @Test("a reload requests the runs of its scope; two scopes together are refused")
    func reloadScope() async throws {
        let service = ScriptedService()
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            _ = try client.reload(refresh: true)
            #expect(throws: ControlClient.Failure.self) {
                _ = try client.reload(configurationOnly: true, refresh: true)
            }
        }
        #expect(service.asked == ["freshetctl reload refresh"])
    }

    @Test("AwaitRuns returns a result for each run, and refuses unknown pipelines, no runs and a name twice")
    func awaitRuns() async throws {
        let service = ScriptedService()
        service.change {
            $0.pipelines["flags"] = $0.pipelines["jwks"]
            $0.refresh["jwks"] = .success(RefreshResult(name: "jwks", outcome: .changed, run: 4))
        }
        try await withControlServer(service) { path in
            var results: [RefreshResult] = []
            try ControlClient(path: path).awaitRuns(
                [RequestedRun("jwks", after: 3), RequestedRun("flags", after: 0)], each: { results.append($0) })
            #expect(Set(results.map(\.name)) == ["jwks", "flags"])
            #expect(results.first { $0.name == "jwks" }?.run == 4)
            for runs in [
                [], [RequestedRun("none", after: 1)], [RequestedRun("jwks", after: 1), RequestedRun("jwks", after: 2)],
            ] {
                #expect(throws: ControlClient.Failure.self) {
                    try ControlClient(path: path).awaitRuns(runs, each: { _ in })
                }
            }
        }
        #expect(Set(service.asked) == ["await jwks after 3", "await flags after 0"])
    }

    @Test("a changed generation is in the next answer, on every connection, also after a rollback and a withdrawal")
    func changedGeneration() async throws {
        let service = ScriptedService()
        @Sendable func publish(_ number: Int64, pinnedSince: Int64? = nil) -> GenerationStatus {
            let generation = GenerationStatus(
                number: number, size: number, digest: "\(number)", committedAt: number, path: "/current/jwks.json",
                pinnedSince: pinnedSince)
            service.change { $0.pipelines["jwks"]?.generation = generation }
            return generation
        }
        try await withControlServer(service) { path in
            let (one, other) = (try ControlClient(path: path), try ControlClient(path: path))
            // The daemon keeps the encoded answers: each is requested twice.
            for (number, pinnedSince) in [(3, nil), (4, nil), (5, nil), (3, nil), (3, 9), (6, nil)] as [(Int64, Int64?)]
            {
                let published = publish(number, pinnedSince: pinnedSince)
                #expect(try one.generation(of: "jwks") == published)
                #expect(try other.generation(of: "jwks") == published)
                #expect(try one.generation(of: "catalogue").number == 3)
            }
            service.change {
                $0.pipelines["jwks"]?.generation = nil
                $0.pipelines["jwks"]?.withdrawn = WithdrawnCopy(
                    number: 6, size: 6, digest: "", committedAt: 6, since: 7)
            }
            #expect(throws: ControlClient.Failure.refused(.withdrawn(name: "jwks", number: 6, since: 7))) {
                try other.generation(of: "jwks")
            }
            service.change { $0.pipelines["jwks"]?.withdrawn = nil }
            let published = publish(6)
            #expect(try one.generation(of: "jwks") == published)
            #expect(try other.generation(of: "jwks") == published)
        }
    }

    @Test("a pipeline without a generation is an error")
    func noGeneration() async throws {
        let service = ScriptedService()
        service.change { $0.pipelines["jwks"]?.generation = nil }
        try await withControlServer(service) { path in
            #expect(throws: ControlClient.Failure.refused(.noGeneration(name: "jwks"))) {
                try ControlClient(path: path).generation(of: "jwks")
            }
        }
    }

    @Test("a pipeline with a withdrawn copy is an error that names the generation")
    func withdrawn() async throws {
        let service = ScriptedService()
        service.change {
            $0.pipelines["jwks"]?.generation = nil
            $0.pipelines["jwks"]?.withdrawn = WithdrawnCopy(number: 7, size: 1, digest: "", committedAt: 1, since: 2)
        }
        try await withControlServer(service) { path in
            #expect(throws: ControlClient.Failure.refused(.withdrawn(name: "jwks", number: 7, since: 2))) {
                try ControlClient(path: path).generation(of: "jwks")
            }
        }
    }

    @Test("monitor begins immediately, misses no event from then on, and leaves out other pipelines")
    func monitor() async throws {
        let service = ScriptedService()
        let events = [
            ControlEvent.signal("network", number: 1, at: 1),
            .state(.loading, of: "catalogue", at: 2),
            .runStarted(RunStatus(number: 7, started: 3), of: "jwks", at: 3),
        ]
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            var received: [ControlEvent?] = []
            try client.monitor(["jwks"]) { event in
                if event == nil { for event in events { service.events.publish(event) } }
                received.append(event)
                return received.count < 3
            }
            #expect(received == [nil, events[0], events[2]])
        }
        #expect(!service.events.isObserved, "when the client has gone, the observation has ended")
    }

    /// A daemon with these sources of signals.
    private func service(signals: [String]) -> ScriptedService {
        let service = ScriptedService()
        service.change { $0.signals = signals.map { SignalStatus(name: $0, fact: "there") } }
        return service
    }

    @Test(
        "followSignals sends firings and facts of the named sources, or of all sources of a named signal",
        arguments: [
            (nil, ["network", "network 192.0.2.7", "resume", "file /a", "operator", "resume"]),
            (["network"], ["network", "network 192.0.2.7"]), (["network 192.0.2.7"], ["network 192.0.2.7"]),
            (["resume", "file"], ["resume", "file /a", "resume"]),
        ] as [([String]?, [String])])
    func followSignals(names: [String]?, expected: [String]) async throws {
        let service = service(signals: ["file /a", "network", "network 192.0.2.7", "operator", "resume"])
        let events = [
            ControlEvent.signal("network", number: 1, at: 1),
            .signal("network", number: 1, source: "network 192.0.2.7", at: 2),
            .state(.loading, of: "jwks", at: 3),
            .fact("resume", "going to sleep", at: 4),
            .signal("file /a", number: 7, detail: "replaced", at: 5),
            .signal("operator", number: 2, pipeline: "jwks", at: 6),
            .reloaded(detail: "", at: 7),
            .signal("resume", number: 1, at: 8),
        ]
        try await withControlServer(service, rights: strangerRights) { path in
            let client = try ControlClient(path: path)
            var received: [String] = []
            try client.followSignals(names) { event in
                guard let event else {
                    for event in events { service.events.publish(event) }
                    return true
                }
                received.append(event.source ?? event.signal ?? "")
                return received.count < expected.count
            }
            #expect(received == expected)
        }
    }

    @Test("a follower that does not read gets the number of its missed events, without unselected events")
    func slowFollower() async throws {
        let service = service(signals: ["network", "file /a"])
        let limit = ControlEvents.queueLimit
        let observation = service.events.observe(SignalSelection(["network"]).contains)
        for number in 1...limit + 3 {
            service.events.publish(.signal("network", number: Int64(number), at: 0))
            service.events.publish(.signal("file /a", number: Int64(number), at: 0))
        }
        #expect(await observation.next() == .skipped(3, at: 0))
        for number in 4...limit + 3 {
            #expect(await observation.next()?.number == Int64(number))
        }
    }

    @Test("monitor leaves facts out")
    func monitorWithoutFacts() async throws {
        let service = ScriptedService()
        try await withControlServer(service) { path in
            var received: [ControlEvent?] = []
            try ControlClient(path: path).monitor { event in
                if event == nil {
                    service.events.publish(.fact("resume", "going to sleep", at: 1))
                    service.events.publish(.signal("resume", number: 1, at: 2))
                }
                received.append(event)
                return received.count < 2
            }
            #expect(received == [nil, .signal("resume", number: 1, at: 2)])
        }
    }

    @Test("a signal that does not exist is refused with a suggestion")
    func unknownSignal() async throws {
        let service = service(signals: ["file /a", "network", "resume"])
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            let refusal = ControlClient.Failure.refused(.noSuchSignal(name: "resum", suggestion: "resume"))
            #expect(throws: refusal) { try client.followSignals(["network", "resum"]) { _ in true } }
            #expect(throws: ControlClient.Failure.refused(.noSuchSignal(name: "zzz", suggestion: nil))) {
                try client.followSignals(["zzz"]) { _ in true }
            }
            #expect(throws: VarlinkClientError.refused(.expectedMore)) {
                try VarlinkClient(path: path).call(ControlInterface.name + ".FollowSignals")
            }
        }
        #expect(SignalSelection.suggestion(for: "file", among: ["file /a", "fils"]) == "file /a")
    }

    @Test("fireSignal passes the caller's kernel credentials, and returns how many pipelines received the signal")
    func fireSignal() async throws {
        let service = service(signals: ["network"])
        service.change { $0.fired = .success(3) }
        try await withControlServer(service) { path in
            let client = try ControlClient(path: path)
            #expect(try client.fireSignal("network").pipelines == 3)
            for refusal in [ControlError.cannotFire(name: "timer"), .noSuchSignal(name: "x", suggestion: nil)] {
                service.change { $0.fired = .failure(refusal) }
                #expect(throws: ControlClient.Failure.refused(refusal)) { try client.fireSignal("timer") }
            }
        }
        #expect(service.asked.first == "fire network for user \(geteuid()), process \(getpid())")
    }

    @Test("monitor without more is refused")
    func monitorWithoutMore() async throws {
        try await withControlServer(ScriptedService()) { path in
            #expect(throws: VarlinkClientError.refused(.expectedMore)) {
                try VarlinkClient(path: path).call(ControlInterface.name + ".Monitor")
            }
        }
    }
}

@Suite struct ControlRightsTests {
    private static let system = ControlRights(daemonUser: 990, isSystemDaemon: true, changingGroup: 50)
    private static let personal = ControlRights(daemonUser: 1_000, isSystemDaemon: false, changingGroup: nil)

    private static let everything = Set(ControlRights.Permission.allCases)
    private static let reads: Set<ControlRights.Permission> = [.read]
    private static let readsAndReloads: Set<ControlRights.Permission> = [.read, .reload]

    @Test(
        "rights depend on user and groups",
        arguments: [
            (system, VarlinkPeer(processIdentifier: 1, user: 0, group: 0), everything),
            (system, VarlinkPeer(processIdentifier: 1, user: 1_000, group: 50), everything),
            (
                system, VarlinkPeer(processIdentifier: 1, user: 1_000, group: 1_000, supplementaryGroups: [4, 50]),
                everything
            ),
            (system, VarlinkPeer(processIdentifier: 1, user: 1_000, group: 1_000), reads),
            (system, VarlinkPeer(processIdentifier: 1, user: 990, group: 50), readsAndReloads),
            (personal, VarlinkPeer(processIdentifier: 1, user: 1_000, group: 1), everything),
            (personal, VarlinkPeer(processIdentifier: 1, user: 0, group: 0), everything),
            (personal, VarlinkPeer(processIdentifier: 1, user: 1_001, group: 1_000), reads),
        ] as [(ControlRights, VarlinkPeer, Set<ControlRights.Permission>)])
    func table(rights: ControlRights, peer: VarlinkPeer, allowed: Set<ControlRights.Permission>) {
        #expect(Set(ControlRights.Permission.allCases.filter { rights.allow($0, by: peer) }) == allowed)
    }
}

@Suite struct NameSuggestionTests {
    @Test(
        "a similar name is suggested, a different name is not",
        arguments: [
            ("jkws", "jwks"), ("JWKS", "jwks"), ("jwk", "jwks"), ("catalog", "catalogue"), ("homepge", "homepage"),
            ("zzzz", nil), ("", nil), ("xy", nil),
        ] as [(String, String?)])
    func suggestions(name: String, expected: String?) {
        #expect(NameSuggestion.closest(to: name, among: ["ab", "catalogue", "homepage", "jwks"]) == expected)
    }
}
