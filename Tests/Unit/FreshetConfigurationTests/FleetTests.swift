import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("fleet of a pipeline")
struct FleetTests {
    private func load(_ fleet: String) -> Configuration {
        FreshetConfigurationTests.load([
            "pipelines/a.yaml": "source: {url: https://x.example/}\ncache: {file: a}\nfleet: \(fleet)\n"
        ])
    }

    @Test("a pipeline is shared only with share: copy")
    func share() {
        #expect(load("{share: copy}").pipelines.first?.fleet == FleetSharing())
        #expect(load("{share: none}").pipelines.first?.fleet == nil)
        #expect(load("{grace: 1min}").pipelines.first?.fleet == nil)
    }

    @Test("the steps of a roll-out end with the whole fleet")
    func steps() {
        func rollOut(_ text: String) -> FleetSteps? {
            let configuration = load("{share: copy, roll-out: \(text)}")
            #expect(texts(configuration.diagnostics) == [])
            return configuration.pipelines.first?.fleet?.rollOut
        }
        #expect(rollOut("{}") == .standard)
        #expect(
            rollOut("{steps: [0.5%, 20%], each: 1h, failures: 10}")
                == FleetSteps(percentages: [0.5, 20, 100], each: .seconds(3_600), failures: 10))
        #expect(rollOut("{steps: 5%}")?.percentages == [5, 100])
        #expect(rollOut("{steps: [100%]}")?.percentages == [100])
    }

    @Test(
        "wrong steps are errors with their place",
        arguments: [
            ("{steps: [10%, 5%]}", "each of the 'steps' has to be larger than the one before"),
            ("{steps: [10]}", "'steps' has to be percentages from 0.0001% to 100%, not '10'"),
            ("{steps: [0%]}", "'steps' has to be percentages from 0.0001% to 100%, not '0%'"),
            ("{steps: [1e1%]}", "'steps' has to be percentages from 0.0001% to 100%, not '1e1%'"),
            ("{steps: [101%]}", "'steps' has to be percentages from 0.0001% to 100%, not '101%'"),
            ("{failures: 0}", "'failures' has to be a number of machines from 1 on, not '0'"),
        ])
    func wrong(text: String, message: String) {
        let errors = texts(load("{share: copy, roll-out: \(text)}").diagnostics)
        #expect(errors.count == 1 && errors.first?.contains("a.yaml:3:") == true, "\(errors)")
        #expect(errors.first?.contains(message) == true, "\(errors)")
    }

    @Test("a mirror needs the domain that it mirrors, and is another one")
    func mirror() {
        func daemon(_ keys: String) -> Configuration {
            FreshetConfigurationTests.load([
                "freshet.yaml":
                    "fleet: {name: prod, servers: ['https://n.example:4222'], publishers: [\(key)], \(keys)}\n"
            ])
        }
        let both = daemon("domain: hub, mirror: ams")
        #expect(both.diagnostics.isEmpty && both.daemon.fleet?.mirror == "ams" && both.daemon.fleet?.domain == "hub")
        for keys in ["mirror: ams", "domain: hub, mirror: hub", "domain: hub, mirror: 'a.b'"] {
            let configuration = daemon(keys)
            #expect(configuration.diagnostics.contains { $0.text().contains("mirror") }, "\(keys)")
        }
    }

    private let key = "UDLVVGABQKYQVN6VJP7NHSLEA45A5YLS6PNKMIZFV4BBU2HXA5IRUVAL"
}
