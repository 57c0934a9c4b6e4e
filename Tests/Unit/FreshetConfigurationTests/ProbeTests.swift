import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("refresh.needs-network with a probe")
struct ProbeTests {
    private func need(_ text: String) -> NetworkNeed? {
        load(pipeline: pipeline("refresh: {needs-network: \(text)}")).policy?.needsNetwork
    }

    @Test("a probe is a URL, with or without an expected status")
    func probe() {
        #expect(
            need("{probe: 'https://probe.example/204?x=1'}")
                == .probe(NetworkProbe(url: "https://probe.example/204?x=1", host: "probe.example")))
        #expect(
            need("{probe: 'http://[2001:db8::1]:8080/', status: 204}")
                == .probe(NetworkProbe(url: "http://[2001:db8::1]:8080/", host: "2001:db8::1", status: 204)))
        for status in [200, 599] {
            guard case .probe(let probe) = need("{probe: 'http://a.example', status: \(status)}") else {
                Issue.record("\(status)")
                continue
            }
            #expect(probe.status == status)
        }
    }

    @Test(
        "errors have their location",
        arguments: [
            (
                "{}",
                "3:26: error: 'needs-network' has no 'probe'; add a URL that answers without a redirect: probe: "
                    + "https://…; or write true, false or an address"
            ),
            (
                "{status: 204}",
                "3:26: error: 'needs-network' has no 'probe'; add a URL that answers without a redirect: probe: "
                    + "https://…; or write true, false or an address"
            ),
            (
                "{probe: probe.example}",
                "3:34: error: 'probe' has to be an absolute URL; begin it with https:// or http://"
            ),
            (
                "{probe: 'ftp://probe.example/'}",
                "3:34: error: 'probe' has to begin with https:// or http://"
            ),
            (
                "{probe: 'https://me:secret@probe.example/'}",
                "3:34: error: 'probe' contains a user name or a password; remove the part before '@': a probe sends no "
                    + "credentials"
            ),
            ("{probe: [a]}", "3:34: error: 'probe' has to be a URL such as https://example.com/204, not a list"),
            (
                "{probe: 'http://a.example/', status: 199}",
                "3:63: error: 'status' has to be a number from 200 to 599, not '199'"
            ),
            (
                "{probe: 'http://a.example/', status: 600}",
                "3:63: error: 'status' has to be a number from 200 to 599, not '600'"
            ),
            (
                "{prob: 'http://a.example/', probe: 'http://a.example/'}",
                "3:27: error: unknown key 'prob'; did you mean 'probe'?"
            ),
            (
                "{probe: 'http://a.example/', headers: {A: b}}",
                "3:55: error: 'headers' belongs below 'source'; move it there"
            ),
            (
                "'https://probe.example/'",
                "3:26: error: 'needs-network' has to be true, false or an address, not a URL; write {probe: URL}"
            ),
            (
                "[true]",
                "3:26: error: 'needs-network' has to be true, false, an address or {probe: URL}, not a list"
            ),
        ])
    func errors(text: String, expected: String) {
        #expect(
            FreshetConfigurationTests.errors(pipeline("refresh: {needs-network: \(text)}")) == ["jwks.yaml:\(expected)"]
        )
    }

    @Test("a drop-in adds a status to the probe, or removes the probe")
    func dropIns() {
        func need(_ dropIn: String) -> NetworkNeed? {
            load([
                "pipelines/jwks.yaml": pipeline("refresh: {needs-network: {probe: 'http://a.example/'}}"),
                "pipelines/jwks.yaml.d/a.yaml": dropIn,
            ]).policy?.needsNetwork
        }
        #expect(
            need("refresh: {needs-network: {status: 204}}")
                == .probe(NetworkProbe(url: "http://a.example/", host: "a.example", status: 204)))
        #expect(need("refresh: {needs-network: true}") == .yes)
        #expect(need("refresh: {needs-network: null}") == .bySource)
    }

    @Test("the daemon's probe applies to pipelines with a network source and without needs-network")
    func daemonDefault() {
        let configuration = load([
            "freshet.yaml": "network-probe: http://probe.example/204\n",
            "pipelines/command.yaml": "source: {exec: [/bin/true]}\ncache: {file: command}\n",
            "pipelines/own.yaml":
                "source: {url: 'https://a.example/'}\nrefresh: {needs-network: {probe: 'http://b.example/'}}\n"
                + "cache: {file: own}\n",
            "pipelines/silent.yaml": "source: {url: 'https://a.example/'}\ncache: {file: silent}\n",
            "pipelines/word.yaml":
                "source: {url: 'https://a.example/'}\nrefresh: {needs-network: true}\ncache: {file: word}\n",
        ])
        #expect(texts(configuration.diagnostics) == [])
        #expect(configuration.daemon.networkProbe?.url == "http://probe.example/204")
        let probes = configuration.pipelines.map { $0.refresh.needsNetwork.probe?.host }
        #expect(configuration.pipelines.map(\.name) == ["command", "own", "silent", "word"])
        #expect(probes == [nil, "b.example", "probe.example", nil])
        let invalid = load(["freshet.yaml": "network-probe: true\n"])
        #expect(!invalid.isDaemonValid)
    }
}
