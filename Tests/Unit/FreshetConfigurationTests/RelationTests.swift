import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Keys that depend on each other")
struct RelationTests {
    private func policy(_ refresh: String) -> RefreshPolicy? {
        load(pipeline: pipeline("refresh: \(refresh)")).policy
    }

    @Test("A configured fresh-for has to be shorter than every")
    func freshness() {
        #expect(
            faults(pipeline("refresh: {every: 10min, fresh-for: 10min}")) == [
                "jwks.yaml:3:36: error: 'fresh-for' is not shorter than 'every', so that signals would never fetch "
                    + "anything; make it shorter than 10min (see jwks.yaml:3:11)"
            ])
        #expect(policy("{every: 10min, fresh-for: 599s}")?.freshFor == .seconds(599))
    }

    @Test("The default of fresh-for is at most half of every, so that a short every is no error")
    func defaultFreshness() {
        #expect(policy("{every: 1min}")?.freshFor == .seconds(30))
        #expect(policy("{every: 1s}")?.freshFor == .milliseconds(500))
        #expect(policy("{every: 2min}")?.freshFor == .seconds(60))
        #expect(policy("{every: 1d}")?.freshFor == .seconds(60))
        #expect(policy("{}")?.freshFor == .seconds(60))
        #expect(policy("{every: infinity}")?.freshFor == .seconds(60))
        #expect(policy("{every: infinity}")?.every == nil)
    }

    @Test("What origins say is heard if it is asked for, and only of a URL")
    func honour() {
        #expect(policy("{}")?.honoursOrigin == false)
        #expect(policy("{honour-origin: true}")?.honoursOrigin == true)
        #expect(
            faults(pipeline("refresh: {honour-origin: yes}")).first?.hasPrefix(
                "jwks.yaml:3:26: error: 'honour-origin' has to be true or false") == true)
        #expect(
            faults(pipeline("refresh: {honour-origin: true}", source: "{exec: [/bin/date]}")) == [
                "jwks.yaml:3:11: warning: 'honour-origin' is about what one URL's answer says, and there is not one, "
                    + "or not one alone; leave it out"
            ])
        #expect(faults(pipeline("refresh: {honour-origin: false}", source: "{file: /etc/hosts}")) == [])
    }

    @Test("A max-age that each copy passes before its next check is a warning")
    func maxAge() {
        func file(_ maxAge: String, _ refresh: String) -> String {
            "source: {url: https://id.example.com/jwks}\ncache: {file: f, max-age: \(maxAge)}\nrefresh: \(refresh)\n"
        }
        func maxAge(_ text: String) -> Duration?? { load(pipeline: text).pipelines.first?.cache.maxAge }
        #expect(maxAge(file("1d", "{every: 1h}")) == .some(.seconds(86_400)))
        #expect(maxAge(file("infinity", "{every: 1h}")) == .some(nil))
        #expect(maxAge(pipeline()) == .some(nil))
        #expect(faults(file("3601s", "{every: 1h}")) == [])
        #expect(faults(file("1s", "{}")) == [])
        #expect(
            faults(file("1h", "{every: 1h}")) == [
                "jwks.yaml:2:27: warning: 'max-age' is not longer than 'every', so that each copy expires before it is "
                    + "checked again; make it longer than 1h"
            ])
        #expect(
            faults(file("1h", "{every: 50min, random-delay: 10min}")) == [
                "jwks.yaml:2:27: warning: 'max-age' is not longer than 'every' and 'random-delay', so that each copy "
                    + "expires before it is checked again; make it longer than 1h"
            ])
        #expect(faults(file("0", "{}")) == ["jwks.yaml:2:27: error: 'max-age' has to be at least 1s"])
    }

    @Test("What is to be withdrawn has to expire")
    func withdraw() {
        func file(_ more: String) -> String {
            "source: {url: https://id.example.com/jwks}\ncache: {file: f, \(more)}\n"
        }
        func withdraws(_ more: String) -> Bool? { load(pipeline: file(more)).pipelines.first?.cache.withdraws }
        #expect(withdraws("max-age: 1d") == false)
        #expect(withdraws("max-age: 1d, withdraw: true") == true)
        #expect(withdraws("withdraw: false") == false)
        let fault =
            "error: 'withdraw' takes a copy away that has expired, and without 'max-age' none ever does; "
            + "say how old a copy may be: max-age: 1d"
        #expect(faults(file("withdraw: true")) == ["jwks.yaml:2:28: \(fault)"])
        #expect(faults(file("withdraw: true, max-age: infinity")) == ["jwks.yaml:2:28: \(fault)"])
        #expect(
            faults(file("max-age: 0, withdraw: true")) == ["jwks.yaml:2:27: error: 'max-age' has to be at least 1s"])
        #expect(
            faults(file("withdraw: yes, max-age: 1d")).first?.contains("'withdraw' has to be true or false") == true)
    }

    @Test("An item's key is a path of names, or a dot")
    func itemKey() {
        func file(_ key: String) -> String {
            "source: {url: https://id.example.com/jwks}\ncache: {file: f, key: \(key)}\n"
        }
        for key in [".id", ".meta.long-name_2", "."] {
            #expect(load(pipeline: file(key)).pipelines.first?.cache.key == key)
            #expect(faults(file(key)) == [])
        }
        for key in ["id", ".id.", "..", ".a b", "'.[0]'"] {
            let quoted = key.filter { $0 != "'" }
            #expect(
                faults(file(key)) == [
                    "jwks.yaml:2:23: error: 'key' has to say where an item's key is, not '\(quoted)'; write a path of "
                        + "names such as .id or .meta.name, or . if the items themselves are the keys"
                ])
        }
    }

    @Test("Quiet is at most at-most, and the default of one gives way to the other")
    func storm() {
        #expect(
            faults(pipeline("refresh: {quiet: 5s, at-most: 4s}")) == [
                "jwks.yaml:3:18: error: 'quiet' is longer than 'at-most', so that it would never pass; make 'at-most' "
                    + "at least as long (see jwks.yaml:3:22)"
            ])
        #expect(policy("{quiet: 30s}")?.atMost == .seconds(30))
        #expect(policy("{at-most: 1s}")?.quiet == .seconds(1))
        #expect(policy("{quiet: 3s, at-most: 3s}")?.atMost == .seconds(3))
    }

    @Test("Retries grow, and the default of one end gives way to the other")
    func retries() {
        #expect(
            faults(pipeline("refresh: {retry: {from: 5s, to: 4s}}")) == [
                "jwks.yaml:3:25: error: 'from' is longer than 'to'; the wait grows from the one to the other: exchange "
                    + "them (see jwks.yaml:3:29)"
            ])
        #expect(policy("{retry: {from: 10min}}")?.retry == RetryPolicy(from: .seconds(600), to: .seconds(600)))
        #expect(policy("{retry: {to: 500ms}}")?.retry == RetryPolicy(from: .milliseconds(500), to: .milliseconds(500)))
        #expect(
            faults(pipeline("refresh: {retry: {from: 0}}")) == [
                "jwks.yaml:3:25: error: 'from' has to be at least 100ms"
            ])
    }

    @Test("What is odd and yet possible is a warning, and the pipeline is sound")
    func warnings() {
        let configuration = load(
            pipeline: "source: {file: /x}\ncache: {file: x, mode: '0666'}\nrefresh: {every: 1s, min-interval: 2s}\n")
        #expect(
            texts(configuration.diagnostics) == [
                "jwks.yaml:2:24: warning: others than the service may write to the copy; what they write is not "
                    + "noticed; 0644 lets all read it",
                "jwks.yaml:3:18: warning: 'every' is shorter than 'min-interval', which has the last word; make "
                    + "'min-interval' the shorter one",
            ])
        #expect(configuration.isSound)
        #expect(configuration.pipelines.count == 1)
        #expect(configuration.faulty.isEmpty)
    }

    @Test("A check of the media type needs a source that has one")
    func mediaType() {
        #expect(
            faults(pipeline("check: {type: text/plain}", source: "{file: /x}")) == [
                "jwks.yaml:3:9: error: 'type' belongs to a 'url': a file or a program states none; leave it out, or "
                    + "check the content by 'jq'"
            ])
    }

    @Test("Two pipelines with one cache file are both faulty, and each fault names the other's place")
    func sharedCacheFile() throws {
        let configuration = load([
            "pipelines/a.yaml": "source: {file: /a}\ncache: {file: x.json}\n",
            "pipelines/b.yaml": "source: {file: /b}\ncache: {keep: 2, file: x.json}\n",
            "pipelines/c.yaml": "source: {file: /c}\ncache: {file: c.json}\n",
        ])
        #expect(
            texts(configuration.diagnostics) == [
                "a.yaml:2:15: error: 'x.json' is the cache file of pipeline 'b' too; give each its own (see "
                    + "b.yaml:2:24)",
                "b.yaml:2:24: error: 'x.json' is the cache file of pipeline 'a' too; give each its own (see "
                    + "a.yaml:2:15)",
            ])
        #expect(configuration.pipelines.map(\.name) == ["c"])
        #expect(configuration.faulty.keys.sorted() == ["a", "b"])
        #expect(configuration.diagnostics.first?.excerpt?.text == "cache: {file: x.json}")
    }
}
