import FreshetModel
import FreshetPipelines
import Testing
import WorldTestSupport

@Suite("A configuration that changes in progress", .ownThread)
struct ReloadTests {
    @Test("two daemons are reloaded during runs: one product changes, the other pipeline only runs more often")
    func twoDaemons() throws {
        let place = Place()
        let one = Machine(
            ["pipelines/news.yaml": pipeline("news", "every: 1h", url: "https://one.example/old")], at: place)
        let two = Machine(
            ["pipelines/news.yaml": pipeline("news", "every: 1h", url: "https://two.example/same")], at: place)
        place.internet["https://one.example/old"].answers(.after(.seconds(5), .content("good, old")))
        place.internet["https://one.example/new"].answers(.after(.seconds(5), .content("good, new")))
        place.internet["https://two.example/same"].answers(.after(.seconds(5), good))
        try one.boot()
        try two.boot()
        try place.pass(.seconds(2))
        one.files["pipelines/news.yaml"] = pipeline("news", "every: 1h", url: "https://one.example/new")
        two.files["pipelines/news.yaml"] = pipeline("news", "every: 10min", url: "https://two.example/same")
        #expect(try one.reload(configurationOnly: true))
        #expect(try two.reload(configurationOnly: true))
        try place.pass(.seconds(100))
        #expect(one.witness.outcomes(of: "news") == [.superseded, .changed])
        #expect(one.disk["news"].text == "good, new")
        #expect(place.internet["https://one.example/new"].times == [2])
        #expect(two.witness.outcomes(of: "news") == [.changed])
        try place.pass(.seconds(3600))
        #expect(place.internet["https://two.example/same"].times == [0, 605, 1210, 1815, 2420, 3025, 3630])
        #expect(place.internet["https://one.example/new"].times == [2, 3607])
        try one.stop()
        try two.stop()
        #expect(one.witness.errors == [])
        #expect(two.witness.errors == [])
    }

    @Test("the signal `reload` makes every subscribed pipeline check once, in a run that starts after the reload")
    func signal() throws {
        let machine = Machine([
            "pipelines/subscribed.yaml": pipeline("subscribed", "every: 1h"),
            "pipelines/other.yaml": pipeline("other", "every: 1h, on: [start]"),
        ])
        for name in ["subscribed", "other"] { machine.origin(name).answers(.after(.seconds(5), good)) }
        try machine.boot()
        try machine.pass(.seconds(2))
        for _ in 0..<10 { #expect(try machine.reload()) }
        try machine.pass(.seconds(60))
        #expect(machine.origin("subscribed").times == [0, 5])
        #expect(machine.origin("other").times == [0])
        #expect(machine.witness.unanswered == [])
        #expect(machine.witness.errors == [])
    }

    @Test("a configuration error changes nothing; a removed pipeline ends, and an added one continues from its copy")
    func errorAndRemoval() throws {
        let machine = Machine([
            "pipelines/news.yaml": pipeline("news", "every: 1h"), "pipelines/jwks.yaml": pipeline("jwks", "every: 1h"),
        ])
        machine.origin("news").answers(good, .hangs())
        machine.origin("jwks").answers(good)
        try machine.boot()
        try machine.pass(.seconds(10))
        let sound = machine.files
        machine.files["pipelines/jwks.yaml"] = "sorce: {}\n"
        machine.files["pipelines/news.yaml"] = nil
        #expect(try !machine.reload())
        #expect(machine.names == ["jwks", "news"])
        // It hangs while it is removed.
        try machine.refresh("news")
        #expect(machine.origin("news").open == 1)
        machine.files["pipelines/jwks.yaml"] = sound["pipelines/jwks.yaml"]
        #expect(try machine.reload())
        #expect(machine.names == ["jwks"])
        #expect(machine.origin("news").open == 0)
        #expect(machine.disk["news"].text == "good")
        machine.origin("news").answers(good)
        machine.files = sound
        #expect(try machine.reload(configurationOnly: true))
        #expect(machine.status("news")?.generation?.number == 1)
        let before = machine.origin("news").times.count
        try machine.pass(.seconds(3600))
        #expect(machine.origin("news").times.count == before + 1)
        try machine.stop()
        #expect(machine.witness.errors == [])
    }
}
