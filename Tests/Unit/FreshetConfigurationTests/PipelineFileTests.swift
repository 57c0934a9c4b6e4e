import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("A pipeline's file")
struct PipelineFileTests {
    @Test("the smallest useful pipeline is read, with defaults for missing keys")
    func smallest() throws {
        let configuration = load(
            pipeline: """
                source: {url: https://id.example.com/.well-known/jwks.json}
                refresh: {every: 15min}
                check: {jq: '.keys | length > 0'}
                cache: {file: jwks.json}
                """)
        #expect(configuration.diagnostics.isEmpty)
        let source = HTTPSource(url: "https://id.example.com/.well-known/jwks.json", host: "id.example.com")
        #expect(
            configuration.pipelines == [
                PipelineDefinition(
                    name: "jwks", source: .http(source), refresh: RefreshPolicy(every: .seconds(900)),
                    check: CheckRules(jq: ".keys | length > 0"), cache: CacheRules(file: "jwks.json"))
            ])
        #expect(configuration.files == ["jwks": ["/etc/freshet/pipelines/jwks.yaml"]])
    }

    @Test("every key is read")
    func everyKey() throws {
        let configuration = load(
            pipeline: """
                format: 1
                description: Keys of the identity provider
                source:
                  url: http://[::1]:8480/jwks?x=1
                  headers: {Accept: application/json, X-Number: 0042}
                transform: .keys
                refresh:
                  on: [network, resume]
                  every: 1h 30min
                  random-delay: 5min
                  quiet: 1s
                  at-most: 20
                  min-interval: 1.5s
                  when-running: restart
                  fresh-for: 0
                  deadline: 30s
                  retry: {from: 500ms, to: 1h}
                  budget: 20/hour
                  needs-network: 192.0.2.7
                  metered: wait
                check: {jq: length > 0, min-bytes: 2, max-bytes: 1GiB, type: [Application/JSON, text/plain]}
                cache: {file: keys.json, mode: "0640", keep: 9}
                """)
        #expect(texts(configuration.diagnostics) == [])
        let expected = PipelineDefinition(
            name: "jwks", description: "Keys of the identity provider",
            source: .http(
                HTTPSource(
                    url: "http://[::1]:8480/jwks?x=1",
                    headers: [HTTPHeader("Accept", "application/json"), HTTPHeader("X-Number", "0042")], host: "::1")),
            transform: ".keys",
            refresh: RefreshPolicy(
                on: [.network, .resume], every: .seconds(5400), randomDelay: .seconds(300), quiet: .seconds(1),
                atMost: .seconds(20), minInterval: .milliseconds(1500), whenRunning: .restart, freshFor: .zero,
                deadline: .seconds(30), retry: RetryPolicy(from: .milliseconds(500), to: .seconds(3600)),
                budget: RequestBudget(20, per: .hour),
                needsNetwork: .address("192.0.2.7"), whenMetered: .wait),
            check: CheckRules(
                jq: "length > 0", minBytes: 2, maxBytes: 1 << 30, types: ["application/json", "text/plain"]),
            cache: CacheRules(file: "keys.json", mode: 0o640, keep: 9))
        #expect(configuration.pipelines == [expected])
    }

    @Test("a command is a list that begins with an absolute path; a file is an absolute path")
    func otherSources() {
        let command = load(pipeline: pipeline(source: "{exec: [/usr/bin/printf, '%s', \"\"]}"))
        #expect(command.pipelines.first?.source == .command(["/usr/bin/printf", "%s", ""]))
        let file = load(pipeline: pipeline(source: "{file: /etc/hosts}"))
        #expect(file.pipelines.first?.source == .file("/etc/hosts"))
    }

    @Test("transform may be below source or at the top, but not both")
    func transforms() {
        let below = load(pipeline: pipeline(source: "{url: http://a.example/, transform: .x}"))
        #expect(below.pipelines.first?.transform == ".x")
        #expect(
            errors(pipeline("transform: .y", source: "{url: http://a.example/, transform: .x}")) == [
                "jwks.yaml:1:34: error: there is a 'transform' here and one at the top of the file; join the programs "
                    + "with '|' "
                    + "and keep one (see jwks.yaml:3:1)"
            ])
    }

    @Test(
        "invalid values are errors at their location, with the remedy",
        arguments: [
            ("refresh: {every: fifteen}", "3:18: error: 'every' has to be a duration such as 15min, not 'fifteen'"),
            (
                "refresh: {every: 15mins}",
                "3:18: error: 'every' has the unknown time unit 'mins'; did you mean 'min'?"
            ),
            ("refresh: {every: 500ms}", "3:18: error: 'every' has to be at least 1s"),
            ("refresh: {every: -1}", "3:18: error: 'every' must not be negative"),
            ("refresh: {every: 101y}", "3:18: error: 'every' is longer than 100 years"),
            (
                "refresh: {every: 99999999999999999999y}",
                "3:18: error: 'every' has a number that is too large: '99999999999999999999y'"
            ),
            (
                "refresh: {every: [1min]}",
                "3:18: error: 'every' has to be a duration such as 15min, or a word such as daily, not a list"
            ),
            (
                "refresh: {deadline: infinity}",
                "3:21: error: 'deadline' cannot be 'infinity'; choose a finite duration"
            ),
            (
                "refresh: {needs-network: yes}",
                "3:26: error: 'needs-network' has to be true or false, not 'yes'; write true, in lower case and "
                    + "without quotes"
            ),
            (
                "refresh: {needs-network: 192.0.2.300}",
                "3:26: error: 'needs-network' has to be an IPv4 or IPv6 address, not '192.0.2.300'; write an address "
                    + "without brackets, port and interface; host names are not allowed here"
            ),
            (
                "refresh: {budget: 500}",
                "3:19: error: 'budget' has to be a budget such as 500/day or 20/hour, not '500'; write the number of "
                    + "requests, a slash, and hour or day"
            ),
            (
                "refresh: {budget: 0/day}",
                "3:19: error: 'budget' needs a number from 1 to 1000000 before the slash, not '0'"
            ),
            (
                "refresh: {budget: 1000001/day}",
                "3:19: error: 'budget' needs a number from 1 to 1000000 before the slash, not '1000001'"
            ),
            (
                "refresh: {when-running: restrat}",
                "3:25: error: 'when-running' has to be one of queue, restart, ignore, not 'restrat'; did you mean "
                    + "'restart'?"
            ),
            (
                "refresh: {metered: no}",
                "3:20: error: 'metered' has to be one of wait, allow, not 'no'"
            ),
            (
                "refresh: {on: [start, netwrok]}",
                "3:23: error: 'on' has to be one of start, network, resume, reload, foreground, metered, not "
                    + "'netwrok'; did you mean 'network'?"
            ),
            (
                "refresh: {on: operator}",
                "3:15: error: 'on' does not accept 'operator'; leave it out: every pipeline receives requests of the "
                    + "operator"
            ),
            ("refresh: {on: [start, start]}", "3:23: warning: 'on' names 'start' twice; remove one of them"),
            ("refresh: {files: [/a, /b, /a]}", "3:27: warning: 'files' names '/a' twice; remove one of them"),
            (
                "refresh: {files: [/a, b]}",
                "3:23: error: 'files' has to be an absolute path, not 'b'; begin it with '/': the service has its own "
                    + "working directory"
            ),
            ("refresh: {files: /a/../b}", "3:18: error: 'files' must not contain '..'; write the path without '..'"),
            ("refresh: {files: /a//b}", "3:18: error: 'files' contains an empty name or '.'; remove it"),
            (
                "refresh: {files: /a/}",
                "3:18: error: 'files' ends in '/'; remove the '/', also from the path of a "
                    + "directory"
            ),
            (
                "refresh: {files: /}",
                "3:18: error: 'files' cannot be the root directory; use a file or directory below it"
            ),
            (
                "refresh:",
                "3:9: error: 'refresh' has to contain keys with values, not an empty value; its keys are on, files, "
                    + "dbus, after, "
                    + "every, at, random-delay, quiet, at-most, min-interval, when-running, fresh-for, honour-origin, "
                    + "deadline, retry, budget, "
                    + "needs-network, metered, power"
            ),
            (
                "description:",
                "3:13: error: 'description' has no value; it has to be one line of text; for the default, leave the "
                    + "key out"
            ),
            ("transform: ' '", "3:12: error: 'transform' is an empty program; leave the key out"),
            (
                "check: {max-bytes: 64MB}",
                "3:20: error: 'max-bytes' has the unknown size unit 'MB'; write M or MiB, which is 2^20 bytes"
            ),
            ("check: {max-bytes: 9E}", "3:20: error: 'max-bytes' is larger than 8 EiB"),
            ("check: {max-bytes: 0}", "3:20: error: 'max-bytes' has to be at least 1"),
            ("check: {max-bytes: 1.5}", "3:20: error: 'max-bytes' has to be a whole number of bytes"),
            (
                "check: {min-bytes: 2M, max-bytes: 1M}",
                "3:20: error: 'min-bytes' is greater than 'max-bytes' (1M); lower 'min-bytes', or raise 'max-bytes' "
                    + "(see jwks.yaml:3:24)"
            ),
            (
                "check: {min-bytes: 65M}",
                "3:20: error: 'min-bytes' is greater than 'max-bytes' (64M); 64M is the default of 'max-bytes': set "
                    + "'max-bytes' too"
            ),
            ("check: {type: text/*}", "3:15: error: 'type' must not contain '*'; list the expected types"),
            ("check: {type: json}", "3:15: error: 'type' has to be a media type such as application/json, not 'json'"),
            ("check: {type: []}", "3:15: error: 'type' is an empty list; leave it out to allow every type"),
        ])
    func wrongValues(line: String, expected: String) {
        #expect(errors(pipeline(line)) == ["jwks.yaml:\(expected)"])
    }

    @Test("refresh.files accepts at most 64 paths", arguments: [(64, 0), (65, 1)])
    func mostFiles(count: Int, expected: Int) {
        let paths = (1...count).map { "/srv/\($0)" }.joined(separator: ", ")
        let found = errors(pipeline("refresh: {files: [\(paths)]}"))
        #expect(found.count == expected)
        #expect(found.allSatisfy { $0.contains("'files' has more than 64 paths") })
    }

    @Test(
        "dangerous names and modes of the cache file are errors",
        arguments: [
            (
                "{file: a/b}",
                "'file' has to be a file name without '/'; the cache keeps all files in one directory, current/"
            ),
            ("{file: ..}", "'file' must not begin with a '.'; choose a visible name"),
            ("{file: \"a\\0b\"}", "'file' has to be a file name without control characters"),
            ("{file: a, mode: 0644}", "'mode' needs quotes; write \"0644\": without quotes, YAML reads a number"),
            (
                "{file: a, mode: '4755'}",
                "'mode' has bits beyond 0777; remove the set-user-ID, set-group-ID and sticky bits"
            ),
            ("{file: a, mode: '0044'}", "'mode' does not let the service itself read the copy; add 0400"),
            ("{file: a, mode: '0888'}", "'mode' has to be three or four octal digits such as \"0644\", not '0888'"),
            ("{file: a, keep: 0}", "'keep' has to be a number from 1 to 1000, not '0'"),
            (
                "{keep: 1}",
                "'cache' has no 'file'; add the name of the file that readers open: cache: {file: "
                    + "name.json}"
            ),
        ])
    func cacheRules(cache: String, expected: String) {
        let errors = load(pipeline: "source: {file: /x}\ncache: \(cache)\n").diagnostics
        #expect(errors.map { [$0.message, $0.remedy].compactMap { $0 }.joined(separator: "; ") } == [expected])
        #expect(errors.allSatisfy { $0.line == 2 && $0.severity == .error })
    }

    @Test("a file name has at most 200 bytes")
    func longestFileName() {
        func load(_ count: Int) -> Configuration {
            FreshetConfigurationTests.load(
                pipeline: "source: {file: /x}\ncache: {file: \(String(repeating: "x", count: count))}")
        }
        #expect(load(200).isValid)
        #expect(load(201).diagnostics.map(\.message) == ["'file' is longer than 200 bytes"])
    }

    @Test(
        "invalid sources are errors",
        arguments: [
            ("{}", "'source' has none of 'url', 'file', 'exec' and 'pipeline'"),
            ("{url: https://a.example/, file: /x}", "'file' and 'url' exclude each other"),
            ("{file: x}", "'file' has to be an absolute path, not 'x'"),
            ("{file: /x/}", "'file' is a directory"),
            ("{exec: uname -r}", "'exec' has to be a list, not text"),
            ("{exec: []}", "'exec' is an empty list"),
            ("{exec: [uname]}", "'exec' has to be an absolute path, not 'uname'"),
            ("{file: /x, headers: {A: b}}", "'headers' need a 'url', but the source is 'file'"),
            ("{url: https://a.example/, headers: {'A:': b}}", "'A:' is not a valid header name"),
            ("{url: https://a.example/, headers: {Range: b}}", "'Range' is a header that Freshet sets itself"),
            (
                "{url: https://a.example/, headers: {A: b, a: c}}",
                "the header 'a' appears twice: header names ignore case"
            ),
            (
                "{url: https://a.example/, headers: {A: \"b\\r\\nC: d\"}}",
                "'A' contains a line break, a control character or a character that is not ASCII"
            ),
        ])
    func wrongSources(source: String, expected: String) {
        #expect(load(pipeline: pipeline(source: source)).diagnostics.map(\.message) == [expected])
    }

    @Test(
        "invalid URLs are errors, and the message does not repeat them",
        arguments: [
            ("ftp://a.example/", "has to begin with https:// or http://"),
            ("/jwks.json", "has to be an absolute URL"),
            ("https://", "has no host"),
            ("https://:80/", "has no host"),
            ("https://joe:secret@a.example/", "contains a user name or a password"),
            ("https://a.example/a b", "contains a space, a control character or a character that is not ASCII"),
            ("https://bücher.example/", "contains a space, a control character or a character that is not ASCII"),
            ("https://a.example/{lang}", "has the unknown placeholder '{lang}'"),
            ("https://a.example/\\", "contains the character '\\'"),
            ("https://a.example/%zz", "has a '%' without two hexadecimal digits"),
            ("https://a.example/#part", "has a fragment, which is never sent"),
            ("https://a.example:99999/", "has a port that is not a number from 1 to 65535"),
            ("https://a.example:0/", "has a port that is not a number from 1 to 65535"),
            ("https://joe:secret/x@a.example/", "has a port that is not a number from 1 to 65535"),
            ("https://a.example:1:2/", "has more than one ':' in its host"),
            ("https://[::1]x/", "has text after the ']' of its address"),
            ("https://[::1/", "has a '[' without a ']'"),
            ("https://[fe80]/", "has no IPv6 address between its brackets"),
            ("https://::1/", "has no host"),
            ("https://a..example/", "has an invalid host name"),
            ("https://a!b.example/", "has an invalid host name"),
        ])
    func urls(url: String, expected: String) {
        let diagnostics = load(pipeline: pipeline(source: "{url: '\(url)'}")).diagnostics
        #expect(diagnostics.map(\.message) == ["'url' \(expected)"])
        #expect(!diagnostics.map { $0.text() }.joined().contains("secret"))
    }

    @Test("there are at most 64 headers, and a value has at most 8 KiB")
    func headerLimits() {
        func load(count: Int, length: Int = 1) -> Configuration {
            let headers = (0..<count).map { "    X-\($0): \(String(repeating: "v", count: length))\n" }.joined()
            return FreshetConfigurationTests.load(
                pipeline: "cache: {file: x}\nsource:\n  url: http://a.example\n  headers:\n\(headers)")
        }
        #expect(load(count: 64).isValid)
        #expect(!load(count: 65).isValid)
        #expect(load(count: 1, length: 8192).isValid)
        #expect(!load(count: 1, length: 8193).isValid)
    }
}
