import FreshetControl
import Glibc
import Logging
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("Signals that are fired by hand")
struct FireSignalTests {
    private let caller = "user \(geteuid()), process \(getpid())"

    @Test("subscribers receive the signal like a real one; causes, events and journal name the caller")
    func firedByRequest() async throws {
        let home = try Home()
        try home.write("one", to: "watched")
        let signals = [
            "start": "on: [start]", "reload": "on: [reload]", "resume": "on: [resume]", "network": "on: [network]",
            "foreground": "on: [foreground]", "metered": "on: [metered]", "pipeline other": "{on: [], after: [other]}",
            "file \(home.path)/watched": "{on: [], files: [\(home.path)/watched]}",
        ]
        try home.configure("other", Home.printing("x", to: "other") + "refresh: {on: []}\n")
        for (index, refresh) in signals.values.sorted().enumerated() {
            let refresh = refresh.hasPrefix("{") ? refresh : "{\(refresh), fresh-for: 0}"
            try home.configure("p\(index)", Home.printing("x", to: "p\(index)") + "refresh: \(refresh)\n")
        }
        let log = LogRecorder()
        let exit = try await withDaemon(home, log) { [caller] client in
            for (name, refresh) in signals {
                let index = try #require(signals.values.sorted().firstIndex(of: refresh))
                // The runs of the start have ended.
                #expect(eventually { (try? client.status("p\(index)").state) != .loading })
                let before = try client.signals().first { $0.name == name }
                #expect(try client.fireSignal(name).pipelines == 1)
                #expect(
                    eventually {
                        let causes = try? client.status("p\(index)").lastCauses
                        return causes?.last?.detail == "fired by hand by \(caller)"
                    }, "\(name)")
                let after = try client.signals().first { $0.name == name }
                #expect(after?.fired == before.map { $0.fired + 1 })
                #expect(after?.lastDetail == "fired by hand by \(caller)")
                let cause = try client.status("p\(index)").lastCauses.last
                #expect(cause?.number == after?.fired)
                if name == "network" || name.hasPrefix("file") { #expect(after?.fact == before?.fact) }
            }
        }
        #expect(exit == .success)
        let lines = log.lines.filter { $0.message == "{signal} was fired by hand" }
        #expect(lines.count == signals.count)
        #expect(lines.allSatisfy { $0.level == .notice && $0.metadata["requested-by"] == caller })
        #expect(lines.allSatisfy { $0.metadata["pipelines"] == "1" })
        #expect(!log.lines.contains { $0.message == "the machine woke up" || $0.message == "configuration active" })
    }

    @Test("signals of a single pipeline and unknown signals are refused, and nothing fires")
    func refused() async throws {
        let home = try Home()
        try home.configure("a", Home.printing("x", to: "a"))
        _ = try await withDaemon(home) { client in
            for name in ["timer", "operator"] {
                #expect(throws: ControlClient.Failure.refused(.cannotFire(name: name))) { try client.fireSignal(name) }
            }
            #expect(throws: ControlClient.Failure.refused(.noSuchSignal(name: "resumee", suggestion: "resume"))) {
                try client.fireSignal("resumee")
            }
            let fired = try client.signals().filter { $0.fired > 0 }.map(\.name)
            #expect(fired == ["start"])
        }
    }

    @Test("the occurrences of a timer are counted")
    func timers() async throws {
        let home = try Home()
        try home.configure("a", Home.printing("x", to: "a") + "refresh: {on: [start], every: 1s, fresh-for: 0}\n")
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            #expect(eventually { ((try? client.signals())?.first { $0.name == "timer" }?.fired ?? 0) > 0 })
        }
        let line = log.lines.first { $0.message == "{signal} fired" && $0.metadata["signal"] == "timer" }
        #expect(line?.metadata["pipeline"] == "a" && line?.metadata["number"] == "1" && line?.level == .debug)
    }
}
