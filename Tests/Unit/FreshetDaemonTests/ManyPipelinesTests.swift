import FreshetControl
import Logging
import Synchronization
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("A start with more pipelines than one thread handles", .serialized, .hangLimit)
struct ManyPipelinesTests {
    private static let count = 3 * DaemonContext.pipelinesPerPause + 5
    private static let names = (0..<count).map { "p\(1_000 + $0)" }

    private func configure(_ home: Home, _ name: String, file: String? = nil, _ more: String = "") throws {
        try home.configure(
            name,
            "source: {file: \(home.path)/data}\nrefresh: {on: []}\ncache: {file: \(file ?? "\(name).txt")}\n" + more)
    }

    /// The status of all pipelines after a start.
    private func statuses(_ home: Home, _ log: LogRecorder = LogRecorder()) async throws -> [String: PipelineStatus] {
        let found = Mutex<[String: PipelineStatus]>([:])
        _ = try await withDaemon(home, log) { client in
            let all = try client.pipelines()
            found.withLock { $0 = Dictionary(all.map { ($0.name, $0) }) { first, _ in first } }
        }
        return found.withLock { $0 }
    }

    @Test("finds the stored state of each, whatever changed while the daemon did not run")
    func stored() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        for name in Self.names { try configure(home, name) }
        _ = try await withDaemon(home) { client in
            var outcomes: [RefreshResult] = []
            try client.refresh(ControlMessage.Refresh(names: Self.names, wait: true)) { outcomes.append($0) }
            #expect(outcomes.count == Self.count && outcomes.allSatisfy { $0.outcome == .changed })
            #expect(try client.hold("p1070").changed)
        }
        var statuses = try await statuses(home)
        #expect(statuses.keys.sorted() == Self.names)
        #expect(statuses.values.allSatisfy { $0.generation?.number == 1 && $0.lastRun?.number == 1 })
        #expect(statuses.filter { $0.value.state == .held }.map(\.key) == ["p1070"])
        #expect(statuses.filter { $0.value.state == .loaded }.count == Self.count - 1)
        // One copy is of another configuration, one has another file, and one pipeline is new.
        try configure(home, "p1010", "transform: .\n")
        try configure(home, "p1020", file: "moved.txt")
        try configure(home, "new")
        let log = LogRecorder()
        statuses = try await self.statuses(home, log)
        #expect(statuses.count == Self.count + 1)
        #expect(statuses.filter { $0.value.generation == nil }.map(\.key).sorted() == ["new", "p1020"])
        #expect(statuses["p1070"]?.state == .held)
        #expect(!log.lines.contains { $0.level >= .warning && $0.metadata["pipeline"] != nil })
    }

    @Test("lets them take their first steps in the order of their names")
    func order() async throws {
        let home = try Home()
        try home.write("one", to: "data")
        for name in Self.names {
            try home.configure(
                name, "source: {file: \(home.path)/data}\nrefresh: {on: [start]}\ncache: {file: \(name).txt}\n")
        }
        let log = LogRecorder()
        _ = try await withDaemon(home, log) { client in
            try #require(eventually { (try? client.pipelines().allSatisfy { $0.generation != nil }) == true })
        }
        let received = log.lines.filter { $0.message == "received a signal" }.compactMap { $0.metadata["pipeline"] }
        #expect(received == Self.names)
    }
}
