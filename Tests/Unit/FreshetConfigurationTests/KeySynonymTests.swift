import Testing

@testable import FreshetConfiguration

@Suite("Keys and texts as users of other programs write them")
struct KeySynonymTests {
    @Test(
        "a key of another program gets the key of Freshet that does the same, with an example",
        arguments: [
            (
                "refresh: {interval: 5m}",
                "3:11: error: unknown key 'interval'; use 'refresh.every': refresh: {every: 15min}"
            ),
            (
                "refresh: {jitter: 5s}",
                "3:11: error: unknown key 'jitter'; use 'refresh.random-delay': "
                    + "refresh: {every: 1h, random-delay: 5min}"
            ),
            ("timeout: 5s", "3:1: error: unknown key 'timeout'; use 'refresh.deadline': refresh: {deadline: 30s}"),
            (
                "maxRetries: 3",
                "3:1: error: unknown key 'maxRetries'; use 'refresh.retry': refresh: {retry: {from: 5s, to: 10min}}; "
                    + "Freshet retries until a run succeeds"
            ),
            (
                "ttl: 1h",
                "3:1: error: unknown key 'ttl'; use 'cache.max-age': cache: {file: data.json, max-age: 1d}; "
                    + "the time between checks is 'refresh.every'"
            ),
            (
                "output: /srv/x",
                "3:1: error: unknown key 'output'; use 'cache.file': cache: {file: data.json}; "
                    + "it is a name below /var/cache/freshet/current, without a directory"
            ),
            (
                "proxy: http://p",
                "3:1: error: unknown key 'proxy'; set http_proxy, https_proxy and no_proxy in /etc/default/freshetd, "
                    + "and restart the service"
            ),
            ("jq: .keys", "3:1: error: unknown key 'jq'; use 'transform': transform: '.items'"),
            (
                "on-change: {exec: [/x], restart: nginx}",
                "3:25: error: unknown key 'restart'; use 'on-change.reload-unit': "
                    + "on-change: {reload-unit: nginx.service}"
            ),
        ])
    func synonym(line: String, expected: String) {
        #expect(errors(pipeline(line)) == ["jwks.yaml:\(expected)"])
    }

    @Test("in the daemon's file, the advice names the pipeline's own file")
    func daemonFile() {
        #expect(
            load(["freshet.yaml": "interval: 5min\n"]).diagnostics.map { $0.explanation() } == [
                "unknown key 'interval'; in a pipeline's own file, use 'refresh.every': refresh: {every: 15min}"
            ])
    }

    @Test(
        "a key of a secret is recognised in each spelling, and no other key",
        arguments: [
            ("token", true), ("Token", true), ("API_KEY", true), ("x-api-key", true), ("-password", true),
            ("_auth", true), ("to\u{212A}en", true), ("credentials", true), ("", false), ("-", false), ("url", false),
            ("every", false), ("tokens", false), ("source", false), ("\u{1}uth", false),
        ])
    func secretKeys(key: String, isSecret: Bool) {
        #expect(KeySynonyms.mayHoldSecret(key) == isSecret)
    }

    @Test("each replacement exists, its example is valid, and each mapping keeps its keys")
    func table() throws {
        for advice in KeySynonyms.all {
            for section in advice.sections {
                let lost = section.keys.map { $0.filter { $0 != "-" } }.filter(advice.names.contains)
                #expect(
                    lost.allSatisfy { KeySynonyms.error(forKey: $0, in: section) == nil },
                    "\(section.rawValue): \(lost)")
            }
            guard let key = advice.key, let example = advice.example else {
                #expect(advice.note != nil && advice.key == nil && advice.example == nil)
                continue
            }
            let path = key.split(separator: ".").map(String.init)
            let parent = path.dropLast().joined(separator: ".")
            let sections = KeyCatalogue.Section.allCases.filter { $0.path == parent }
            #expect(sections.contains { $0.keys.contains(path.last ?? "") }, "\(key)")
            let rest = ["source: {url: 'https://example.com/data.json'}", "cache: {file: data.json}"].filter {
                !example.hasPrefix($0.prefix { $0 != ":" })
            }
            let other = "source: {file: /x}\ncache: {file: catalogue.json}\n"
            let found = load([
                "pipelines/jwks.yaml": (rest + [example]).joined(separator: "\n"), "pipelines/catalogue.yaml": other,
            ]).diagnostics
            #expect(!found.contains { $0.severity == .error }, "\(example): \(found.map { $0.explanation() })")
        }
    }

    @Test("the value of a key that users give a secret is not shown")
    func secrets() throws {
        for key in ["token", "password", "api-key", "Authorization"] {
            let found = try #require(load(pipeline: pipeline("\(key): s3cret")).diagnostics.first)
            #expect(found.explanation().contains("use 'source.credential'"))
            #expect(!found.text().contains("s3cret"))
        }
    }

    @Test(
        "text with braces and without quotation marks gets the remedy to quote it",
        arguments: [
            ("source: {url: http://a/{lang}}", "quote the URL: it contains braces"),
            ("source: {url: http://a/x?l={lang}&m=1}", "quote the URL: it contains braces"),
            ("source: {exec: [/bin/x, --lang={lang}]}", "quote the text: it contains braces"),
            ("source: {exec: [/bin/x, {lang}-x]}", "quote the text: it contains braces"),
            ("source:\n  url: {base}/x", "quote the text: it contains braces"),
            ("source: {url: {base}/x}", "quote the text: it contains braces"),
            ("source: {url: {item.url}}", "quote the text: it contains braces"),
            ("source:\n  url: {lang}", "quote the text: it contains braces"),
            ("description: *:0/5", "quote the text"),
            ("source: {url: [a}", "close the bracket"),
        ])
    func braces(text: String, remedy: String) {
        #expect(load(pipeline: text + "\ncache: {file: x}\n").diagnostics.contains { $0.remedy == remedy })
    }

    @Test("a key without a space after its colon gets the remedy to write the space")
    func missingSpace() {
        #expect(
            load(pipeline: "source: {url:https://a.example/}\ncache: {file: x}\n").diagnostics.contains {
                $0.remedy == "write a space after the ':' of 'url'"
            })
    }
}
