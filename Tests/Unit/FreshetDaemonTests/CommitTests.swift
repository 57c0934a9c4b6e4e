import FreshetControl
import FreshetModel
import TestSupport
import Testing
import WorldTestSupport

@testable import FreshetDaemon
@testable import FreshetPipelines

@Suite("Pipelines that run after others")
struct CommitTests {
    /// A pipeline that copies a file, and only runs after others.
    private func copying(_ source: String, to name: String, after: String = "[]") -> String {
        "source: {file: \(source)}\ncache: {file: \(name)}\nrefresh: {on: [], after: \(after), quiet: 10ms}\n"
    }

    @Test("a new generation runs a chain of pipelines; an unchanged, failed or earlier run does not")
    func chain() async throws {
        let home = try Home()
        let current = home.path + "/cache/below/current"
        try home.write("one", to: "input")
        try home.configure("a", copying("\(home.path)/input", to: "a"))
        try home.configure("b", copying("\(current)/a", to: "b", after: "a"))
        try home.configure("c", copying("\(current)/b", to: "c", after: "[b]"))
        _ = try await withDaemon(home) { client in
            func row(_ name: String) throws -> SignalStatus? { try client.signals().first { $0.name == name } }
            #expect(try row("pipeline a")?.fact == "no copy yet")
            #expect(try row("pipeline c") == nil, "nobody runs after it")
            #expect(try client.refresh("a").outcome == .changed)
            #expect(eventually { home.copy("c") == "one" })
            let status = try client.status("b")
            #expect(status.lastCauses.map(\.signal) == ["pipeline"])
            #expect(status.lastCauses.first?.detail == "a committed generation 1")
            #expect(try row("pipeline a")?.fact.hasPrefix("generation 1, 3 bytes, since ") == true)
            #expect(try row("pipeline a")?.lastDetail == "a committed generation 1")

            #expect(try client.refresh("a").outcome == .unchanged)
            try home.configure("d", "source: {exec: [/bin/false]}\ncache: {file: d}\nrefresh: {on: []}\n")
            try home.configure("e", copying("\(home.path)/input", to: "e", after: "d"))
            _ = try client.reload(configurationOnly: true)
            #expect(try client.refresh("d").outcome == .failed)
            try home.write("two", to: "input")
            #expect(try client.refresh("a").outcome == .changed)
            #expect(eventually { home.copy("c") == "two" })
            #expect(eventually { (try? client.status("c").lastRun?.outcome) == .changed })
            #expect(try ["b", "c"].map { try client.status($0).lastRun?.number } == [2, 2])
            #expect(try row("pipeline a")?.fired == 2)
            #expect(try row("pipeline d")?.fired == 0)
            #expect(home.copy("e") == nil)
        }
        _ = try await withDaemon(home) { client in
            let again = try client.refresh("a")
            #expect(again.outcome == .unchanged)
            #expect(try client.signals().first { $0.name == "pipeline a" }?.fired == 0)
            #expect(try client.status("b").lastRun?.number == 2, "that of before")
        }
    }

    @Test("the last pipeline of a diamond gets the content of both sides, in at most two runs")
    func diamond() async throws {
        let home = try Home()
        let current = home.path + "/cache/below/current"
        try home.write("one", to: "input")
        try home.configure("a", copying("\(home.path)/input", to: "a"))
        for side in ["b", "c"] { try home.configure(side, copying("\(current)/a", to: side, after: "a")) }
        try home.configure(
            "d",
            """
            source: {exec: [/bin/cat, \(current)/b, \(current)/c]}
            cache: {file: d}
            refresh: {on: [], after: [b, c], quiet: 10ms, retry: {from: 365d, to: 365d}}
            """)
        _ = try await withDaemon(home) { client in
            for side in ["b", "c"] { #expect(try client.refresh(side).failure != nil) }
            _ = try client.refresh("a")
            #expect(eventually { home.copy("d") == "oneone" })
            try home.write("two", to: "input")
            _ = try client.refresh("a")
            #expect(eventually { home.copy("d") == "twotwo" })
            #expect(eventually { (try? client.status("d"))?.nextRun == nil })
            // Two runs for each of the two changes: the runs of the first change may end after its result is visible.
            #expect(try #require(client.status("d").lastRun?.number) <= 4)
        }
    }

    @Test("a reload adds and removes dependencies, and does not touch unchanged ones")
    func reload() async throws {
        let home = try Home()
        try home.write("one", to: "input")
        for name in ["a", "b"] { try home.configure(name, copying("\(home.path)/input", to: name)) }
        try home.configure("c", copying("\(home.path)/input", to: "c", after: "[a]"))
        _ = try await withDaemon(home) { client in
            func rows() throws -> [String] { try client.signals().map(\.name).filter { $0.hasPrefix("pipeline ") } }
            _ = try client.refresh("a")
            #expect(eventually { home.copy("c") == "one" })
            try home.configure("c", copying("\(home.path)/input", to: "c", after: "[b]"))
            #expect(try client.reload(configurationOnly: true).summary.changed == ["c"])
            #expect(try rows() == ["pipeline b"])
            try home.write("two", to: "input")
            #expect(try client.refresh("a").outcome == .changed)
            #expect(home.copy("c") == "one")
            #expect(try client.refresh("b").outcome == .changed)
            #expect(eventually { home.copy("c") == "two" })

            // A row stays as long as a pipeline names it, also if the named pipeline is removed.
            try home.configure("b", copying("\(home.path)/input", to: "b2"))
            #expect(try client.reload(configurationOnly: true).summary.changed == ["b"])
            try home.write("three", to: "input")
            #expect(try client.refresh("b").outcome == .changed)
            #expect(eventually { home.copy("c") == "three" })

            try home.configure("b", nil)
            let failure = #expect(throws: ControlClient.Failure.self) { _ = try client.reload() }
            guard case .refused(.configurationRefused(let errors)) = failure else {
                Issue.record("\(String(describing: failure))")
                return
            }
            #expect(errors.map(\.message) == ["there is no pipeline 'b'; 'after' takes the names of other pipelines"])
            #expect(try rows() == ["pipeline b"])
        }
    }

    @Test("pipelines are grouped by their dependencies")
    func dependencyGroups() {
        #expect(OnceRun.dependencyGroups([:]) == [])
        #expect(OnceRun.dependencyGroups(["b": [], "a": []]) == [["a", "b"]])
        #expect(
            OnceRun.dependencyGroups([
                "d": ["b", "c"], "c": ["a"], "b": ["a"], "a": [], "e": ["a", "d"], "f": ["invalid"],
            ])
                == [["a", "f"], ["b", "c"], ["d"], ["e"]])
    }

    @Test("the row of an invalid pipeline that others run after says that it does not run")
    func invalid() async throws {
        let home = try Home()
        try home.configure("a", "nonsense: 1\n")
        try home.configure("b", Home.printing("x", to: "b") + "refresh: {after: a}\n")
        _ = try await withDaemon(home) { client in
            let row = try client.signals().first { $0.name == "pipeline a" }
            #expect(row?.fact == "no copy yet")
            #expect(row?.unavailable?.hasPrefix("it does not run: ") == true)
            #expect(try client.refresh("b").failure == nil)
        }
    }
}
