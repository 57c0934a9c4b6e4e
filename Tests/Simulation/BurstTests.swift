import FreshetPipelines
import FreshetSystemSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@Suite("A hundred thousand events in ten seconds", .ownThread)
struct BurstTests {
    /// Events that come one after the other.
    private static let kinds = 6

    @Test("events of all kinds cost the runs that a burst may cost, and the last run includes all of them")
    func mixed() throws {
        let names = ["a", "b", "c", "d"]
        let paths = ["/etc/app.conf", "/srv/list"]
        let machine = Machine(
            Dictionary(
                uniqueKeysWithValues: names.map { name in
                    let refresh = """
                        on: [start, network, resume, reload, foreground], fresh-for: 0, every: 1h, \
                        files: [\(paths.joined(separator: ", "))], dbus: [{interface: org.example.A}]
                        """
                    return ("pipelines/\(name).yaml", pipeline(name, refresh))
                }))
        for name in names { machine.origin(name).answers(.after(.milliseconds(20), good)) }
        try machine.boot()
        try machine.pass(.seconds(100))
        let before = machine.witness.starts(of: "a").count
        let timers = machine.place.clock.manual.sleeperCount
        // 10,000 instants, a millisecond apart, ten events each.
        for instant in 0..<10_000 {
            switch instant % Self.kinds {
            case 0: try machine.network(instant % 12 == 0 ? "office" : "home")
            case 1: try machine.file(paths[instant % 2], times: 10)
            case 2: try machine.bus("org.example.A", times: 19)
            case 3: if instant % 600 == 3 { for name in names { machine.flood(name, 1) } }
            case 4:
                let session = LoginSession(
                    id: "1", userID: 1000, userName: "alice", isActive: true, isLocked: instant % 12 == 4)
                try machine.session("1", session)
            default: try machine.file(paths[0], times: 28)
            }
            try machine.pass(.milliseconds(1))
        }
        #expect(machine.place.clock.manual.sleeperCount <= timers + names.count)
        try machine.pass(.seconds(60))
        for name in names {
            #expect(machine.witness.starts(of: name).count > before)
            #expect(machine.status(name)?.activity == .loaded)
            #expect(machine.status(name)?.waitsFor == nil)
        }
        #expect(machine.place.clock.manual.sleeperCount == timers)
        // The witness has counted each firing and all runs.
        #expect(machine.witness.unanswered == [])
        try machine.stop()
        #expect(machine.witness.errors == [])
    }

    @Test("signals of one kind outside of a burst: a run immediately, one after each at-most, and one at the end")
    func bound() throws {
        let machine = Machine(["pipelines/a.yaml": pipeline("a", "on: [], fresh-for: 0, files: [/etc/app.conf]")])
        machine.origin("a").answers(good)
        try machine.boot()
        for _ in 0..<10_000 {
            try machine.file("/etc/app.conf", times: 10)
            try machine.pass(.milliseconds(1))
        }
        try machine.pass(.seconds(60))
        #expect(machine.witness.starts(of: "a") == [0, 10.001])
        let causes = ["file /etc/app.conf (10)", "file /etc/app.conf (99990)"]
        #expect(machine.witness.causes(of: "a") == causes)
        #expect(machine.witness.errors == [])
    }
}
