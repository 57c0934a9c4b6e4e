import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Keys that depend on each other")
struct RelationTests {
    private func policy(_ refresh: String) -> RefreshPolicy? {
        load(pipeline: pipeline("refresh: \(refresh)")).policy
    }

    @Test("fresh-for must be shorter than every")
    func freshness() {
        #expect(
            errors(pipeline("refresh: {every: 10min, fresh-for: 10min}")) == [
                "jwks.yaml:3:36: error: 'fresh-for' is not shorter than 'every', so no signal would ever start a run; "
                    + "make it shorter than 10min (see jwks.yaml:3:11)"
            ])
        #expect(policy("{every: 10min, fresh-for: 599s}")?.freshFor == .seconds(599))
    }

    @Test("the default of fresh-for is at most half of every, so that a short every is not an error")
    func defaultFreshness() {
        #expect(policy("{every: 1min}")?.freshFor == .seconds(30))
        #expect(policy("{every: 1s}")?.freshFor == .milliseconds(500))
        #expect(policy("{every: 2min}")?.freshFor == .seconds(60))
        #expect(policy("{every: 1d}")?.freshFor == .seconds(60))
        #expect(policy("{}")?.freshFor == .seconds(60))
        #expect(policy("{every: infinity}")?.freshFor == .seconds(60))
        #expect(policy("{every: infinity}")?.every == nil)
    }

    @Test("honour-origin is off by default, and needs a URL")
    func honour() {
        #expect(policy("{}")?.honoursOrigin == false)
        #expect(policy("{honour-origin: true}")?.honoursOrigin == true)
        #expect(
            errors(pipeline("refresh: {honour-origin: yes}")).first?.hasPrefix(
                "jwks.yaml:3:26: error: 'honour-origin' has to be true or false") == true)
        #expect(
            errors(pipeline("refresh: {honour-origin: true}", source: "{exec: [/bin/date]}")) == [
                "jwks.yaml:3:11: warning: 'honour-origin' has no effect: it needs a source that is a single 'url'; "
                    + "leave it out"
            ])
        #expect(errors(pipeline("refresh: {honour-origin: false}", source: "{file: /etc/hosts}")) == [])
    }

    @Test("a max-age that is not longer than every is a warning")
    func maxAge() {
        func file(_ maxAge: String, _ refresh: String) -> String {
            "source: {url: https://id.example.com/jwks}\ncache: {file: f, max-age: \(maxAge)}\nrefresh: \(refresh)\n"
        }
        func maxAge(_ text: String) -> Duration?? { load(pipeline: text).pipelines.first?.cache.maxAge }
        #expect(maxAge(file("1d", "{every: 1h}")) == .some(.seconds(86_400)))
        #expect(maxAge(file("infinity", "{every: 1h}")) == .some(nil))
        #expect(maxAge(pipeline()) == .some(nil))
        #expect(errors(file("3601s", "{every: 1h}")) == [])
        #expect(errors(file("1s", "{}")) == [])
        #expect(
            errors(file("1h", "{every: 1h}")) == [
                "jwks.yaml:2:27: warning: 'max-age' is not longer than 'every', so each copy expires before the next "
                    + "check; make it longer than 1h"
            ])
        #expect(
            errors(file("1h", "{every: 50min, random-delay: 10min}")) == [
                "jwks.yaml:2:27: warning: 'max-age' is not longer than 'every' and 'random-delay', so each copy "
                    + "expires before the next check; make it longer than 1h"
            ])
        #expect(errors(file("0", "{}")) == ["jwks.yaml:2:27: error: 'max-age' has to be at least 1s"])
    }

    @Test("withdraw needs max-age")
    func withdraw() {
        func file(_ more: String) -> String {
            "source: {url: https://id.example.com/jwks}\ncache: {file: f, \(more)}\n"
        }
        func withdraws(_ more: String) -> Bool? { load(pipeline: file(more)).pipelines.first?.cache.withdraws }
        #expect(withdraws("max-age: 1d") == false)
        #expect(withdraws("max-age: 1d, withdraw: true") == true)
        #expect(withdraws("withdraw: false") == false)
        let error =
            "error: 'withdraw' removes expired copies, but without 'max-age' no copy expires; "
            + "set the maximum age of a copy: max-age: 1d"
        #expect(errors(file("withdraw: true")) == ["jwks.yaml:2:28: \(error)"])
        #expect(errors(file("withdraw: true, max-age: infinity")) == ["jwks.yaml:2:28: \(error)"])
        #expect(
            errors(file("max-age: 0, withdraw: true")) == ["jwks.yaml:2:27: error: 'max-age' has to be at least 1s"])
        #expect(
            errors(file("withdraw: yes, max-age: 1d")).first?.contains("'withdraw' has to be true or false") == true)
    }

    @Test("an item's key is a path of names, or a dot")
    func itemKey() {
        func file(_ key: String) -> String {
            "source: {url: https://id.example.com/jwks}\ncache: {file: f, key: \(key)}\n"
        }
        for key in [".id", ".meta.long-name_2", "."] {
            #expect(load(pipeline: file(key)).pipelines.first?.cache.key == key)
            #expect(errors(file(key)) == [])
        }
        for key in ["id", ".id.", "..", ".a b", "'.[0]'"] {
            let quoted = key.filter { $0 != "'" }
            #expect(
                errors(file(key)) == [
                    "jwks.yaml:2:23: error: 'key' has to be the path of an item's key, not '\(quoted)'; write a path "
                        + "of "
                        + "names such as .id or .meta.name, or . if the items themselves are the keys"
                ])
        }
    }

    @Test("quiet must not exceed at-most, and the default of one is adapted to the other")
    func burst() {
        #expect(
            errors(pipeline("refresh: {quiet: 5s, at-most: 4s}")) == [
                "jwks.yaml:3:18: error: 'quiet' is longer than 'at-most', so it would have no effect; make 'at-most' "
                    + "at least as long (see jwks.yaml:3:22)"
            ])
        #expect(policy("{quiet: 30s}")?.atMost == .seconds(30))
        #expect(policy("{at-most: 1s}")?.quiet == .seconds(1))
        #expect(policy("{quiet: 3s, at-most: 3s}")?.atMost == .seconds(3))
    }

    @Test("retry.from must not exceed retry.to, and the default of one is adapted to the other")
    func retries() {
        #expect(
            errors(pipeline("refresh: {retry: {from: 5s, to: 4s}}")) == [
                "jwks.yaml:3:25: error: 'from' is longer than 'to'; the backoff grows from 'from' to 'to': exchange "
                    + "them (see jwks.yaml:3:29)"
            ])
        #expect(policy("{retry: {from: 10min}}")?.retry == RetryPolicy(from: .seconds(600), to: .seconds(600)))
        #expect(policy("{retry: {to: 500ms}}")?.retry == RetryPolicy(from: .milliseconds(500), to: .milliseconds(500)))
        #expect(
            errors(pipeline("refresh: {retry: {from: 0}}")) == [
                "jwks.yaml:3:25: error: 'from' has to be at least 100ms"
            ])
    }

    @Test("unusual but possible values are warnings, and the pipeline is valid")
    func warnings() {
        let configuration = load(
            pipeline: "source: {file: /x}\ncache: {file: x, mode: '0666'}\nrefresh: {every: 1s, min-interval: 2s}\n")
        #expect(
            texts(configuration.diagnostics) == [
                "jwks.yaml:2:24: warning: the mode lets other users write to the copy; Freshet does not notice such "
                    + "changes; 0644 lets every user read the copy",
                "jwks.yaml:3:18: warning: 'every' is shorter than 'min-interval', which takes precedence; make "
                    + "'min-interval' shorter than 'every'",
            ])
        #expect(configuration.isValid)
        #expect(configuration.pipelines.count == 1)
        #expect(configuration.invalid.isEmpty)
    }

    @Test("check.type needs a source with a media type")
    func mediaType() {
        #expect(
            errors(pipeline("check: {type: text/plain}", source: "{file: /x}")) == [
                "jwks.yaml:3:9: error: 'type' needs a 'url': a file or a program has no media type; leave it out, or "
                    + "check the content with 'jq'"
            ])
    }

    @Test("two pipelines with the same cache file are invalid, and each error has the other's location")
    func sharedCacheFile() throws {
        let configuration = load([
            "pipelines/a.yaml": "source: {file: /a}\ncache: {file: x.json}\n",
            "pipelines/b.yaml": "source: {file: /b}\ncache: {keep: 2, file: x.json}\n",
            "pipelines/c.yaml": "source: {file: /c}\ncache: {file: c.json}\n",
        ])
        #expect(
            texts(configuration.diagnostics) == [
                "a.yaml:2:15: error: 'x.json' is also the cache file of pipeline 'b'; give each pipeline its own "
                    + "'cache.file' (see "
                    + "b.yaml:2:24)",
                "b.yaml:2:24: error: 'x.json' is also the cache file of pipeline 'a'; give each pipeline its own "
                    + "'cache.file' (see "
                    + "a.yaml:2:15)",
            ])
        #expect(configuration.pipelines.map(\.name) == ["c"])
        #expect(configuration.invalid.keys.sorted() == ["a", "b"])
        #expect(configuration.diagnostics.first?.excerpt?.text == "cache: {file: x.json}")
    }
}
