import FreshetModel
import FreshetPipelines
import Testing
import WorldTestSupport

@Suite("A thousand pipelines", .ownThread)
struct ManyTests {
    /// The names of the pipelines of a kind.
    private func names(_ kind: String, _ count: Int) -> [String] { (0..<count).map { "\(kind)\($0)" } }

    private func machine(concurrency: Int, _ names: [String], _ refresh: String) -> Machine {
        var files = ["freshet.yaml": "concurrency: \(concurrency)\n"]
        for name in names { files["pipelines/\(name).yaml"] = pipeline(name, refresh) }
        return Machine(files)
    }

    @Test("a hundred hang, a hundred fail, a hundred get floods of signals: seven hundred keep their schedule")
    func isolation() throws {
        let sound = names("sound", 700)
        let hanging = names("hang", 100)
        let failing = names("fail", 100)
        let flooded = names("flood", 100)
        let machine = machine(concurrency: 200, sound + hanging + failing + flooded, "every: 10min, quiet: 1s")
        for name in sound + flooded { machine.origin(name).answers(good) }
        for name in hanging { machine.origin(name).answers(.hangs()) }
        for name in failing { machine.origin(name).answers(down()) }
        try machine.boot()
        for _ in 0..<12 {
            for name in flooded { machine.flood(name, 100) }
            try machine.pass(.seconds(300))
        }
        for name in sound {
            #expect(machine.witness.starts(of: name) == [0, 600, 1200, 1800, 2400, 3000, 3600])
        }
        for name in flooded {
            // Each flood is one request; a signal that comes while the daemon starts is held or passes, as the first
            // one.
            #expect(machine.witness.starts(of: name).count <= 14, "\(machine.witness.starts(of: name))")
            #expect(machine.status(name)?.freshness == .fresh)
        }
        for name in hanging {
            #expect(machine.witness.failures(of: name) >= 8)
            #expect(machine.origin(name).open <= 1)
        }
        #expect(machine.place.internet.mostOpen <= 200)
        try machine.stop()
        #expect(machine.place.internet.open == 0)
        #expect(machine.witness.errors == [])
    }

    @Test(
        "pipelines that hang at one origin delay others at that origin only until their deadlines, and no other origin")
    func fullOrigin() throws {
        let hanging = names("hang", 60)
        let sound = names("sound", 300)
        var files = ["freshet.yaml": "concurrency: 20\norigin-concurrency: 4\n"]
        for name in hanging + ["beside"] {
            files["pipelines/\(name).yaml"] = pipeline(
                name, "every: 10min, deadline: 10s", url: "https://full.example.com/\(name)")
        }
        for name in sound { files["pipelines/\(name).yaml"] = pipeline(name, "every: 10min, deadline: 10s") }
        let machine = Machine(files)
        for name in hanging { machine.place.internet["https://full.example.com/\(name)"].answers(.hangs()) }
        machine.place.internet["https://full.example.com/beside"].answers(good)
        for name in sound { machine.origin(name).answers(good) }
        try machine.boot()
        for name in sound { #expect(machine.witness.starts(of: name) == [0]) }
        for _ in 0..<200 {
            try machine.pass(.seconds(1))
            #expect(machine.place.internet.requests(of: "full") <= 4)
        }
        // In turn: sixty that hang with four permits for 10 s each.
        #expect((machine.witness.starts(of: "beside").first ?? .infinity) <= 150)
        let late = machine.status(try #require(hanging.last))
        #expect(
            late?.waitsFor?.reason != .permit || late?.waitsFor?.detail?.contains("at https://full.example.com") == true
        )
        try machine.pass(.seconds(600))
        for name in sound { #expect(machine.witness.starts(of: name) == [0, 600]) }
        try machine.stop()
        #expect(machine.witness.errors == [])
    }

    @Test("if hanging pipelines hold every permit, the others wait only until their deadlines")
    func starvation() throws {
        let hanging = names("hang", 100)
        let sound = names("sound", 50)
        let machine = machine(concurrency: 20, hanging + sound, "every: 10min, deadline: 10s")
        for name in hanging { machine.origin(name).answers(.hangs()) }
        for name in sound { machine.origin(name).answers(good) }
        try machine.boot()
        try machine.pass(.seconds(1200))
        for name in sound {
            // A hundred that hang with twenty permits for 10 s each.
            #expect((machine.witness.starts(of: name).first ?? .infinity) <= 50)
            #expect(machine.status(name)?.generation?.number == 1)
        }
        #expect(machine.place.internet.mostOpen == 20)
        try machine.stop()
        #expect(machine.witness.errors == [])
    }
}
