import FreshetModel
import Testing

@testable import FreshetConfiguration

@Suite("Unknown keys")
struct UnknownKeyTests {
    @Test(
        "an unknown key is an error with a suggestion",
        arguments: [
            ("refresh: {evry: 1min}", "3:11: error: unknown key 'evry'; did you mean 'every'?"),
            ("refresh: {Every: 1min}", "3:11: error: unknown key 'Every'; did you mean 'every'?"),
            ("refresh: {random_delay: 1min}", "3:11: error: unknown key 'random_delay'; did you mean 'random-delay'?"),
            ("refresh: {freshFor: 1s}", "3:11: error: unknown key 'freshFor'; did you mean 'fresh-for'?"),
            ("refresh: {retry: {form: 1s}}", "3:19: error: unknown key 'form'; did you mean 'from'?"),
            ("refersh: {every: 1min}", "3:1: error: unknown key 'refersh'; did you mean 'refresh'?"),
            ("every: 1min", "3:1: error: 'every' belongs below 'refresh'; move it there"),
            ("mode: '0644'", "3:1: error: 'mode' belongs below 'cache'; move it there"),
            (
                "file: /x",
                "3:1: error: 'file' belongs below 'source' or below 'source.credential' or below 'cache'; move it there"
            ),
            ("check: {description: x}", "3:9: error: 'description' belongs at the top of the file; move it there"),
            ("evrey: 1min", "3:1: error: unknown key 'evrey'; did you mean 'every' below 'refresh'?"),
            ("splay: 1min", "3:1: error: 'splay' belongs below 'on-change' or in freshet.yaml; move it there"),
            ("refresh: {max-age: 1d}", "3:11: error: 'max-age' belongs below 'cache'; move it there"),
            ("max-age: 1d", "3:1: error: 'max-age' belongs below 'cache'; move it there"),
            ("on-change: {exec: [/x], timout: 1s}", "3:25: error: unknown key 'timout'; did you mean 'timeout'?"),
            ("on_change: []", "3:1: error: unknown key 'on_change'; did you mean 'on-change'?"),
            (
                "check: {sha256: {url: https://a/b, nam: x}}",
                "3:36: error: unknown key 'nam'; did you mean 'name'?"
            ),
            (
                "check: {zebra: 1}",
                "3:9: error: unknown key 'zebra'; the keys here are jq, min-bytes, max-bytes, type, format, items, "
                    + "min-items, shrink, valid-until, made-at, made-within, sha256, minisign, exec, timeout"
            ),
        ])
    func unknown(line: String, expected: String) {
        #expect(errors(pipeline(line)) == ["jwks.yaml:\(expected)"])
    }

    @Test("in the daemon's file, a key of pipelines is an error that names the right file")
    func daemon() {
        let configuration = load(["freshet.yaml": "every: 5min\nconcurency: 3\n"])
        #expect(
            configuration.diagnostics.map { $0.text() } == [
                """
                /etc/freshet/freshet.yaml:1:1: error: 'every' belongs in a pipeline's own file, below 'refresh'; move \
                it there
                    1 | every: 5min
                      | ^
                """,
                """
                /etc/freshet/freshet.yaml:2:1: error: unknown key 'concurency'; did you mean 'concurrency'?
                    2 | concurency: 3
                      | ^
                """,
            ])
        #expect(!configuration.isDaemonValid)
        #expect(configuration.daemonDiagnostics == configuration.diagnostics)
    }

    @Test("all errors of all files are reported together, in reading order, with the path of the key")
    func allAtOnce() {
        let configuration = load([
            "pipelines/b.yaml": "source: {file: x}\ncache: {file: .b}\nrefresh:\n  evry: 1\n  retry: {from: x}\n",
            "pipelines/a.yaml": "{}",
            "freshet.yaml": "splay: soon\nconcurrency: 0\n",
        ])
        #expect(
            configuration.diagnostics.map { "\($0.file.split(separator: "/").last ?? ""):\($0.keyPath ?? "")" } == [
                "freshet.yaml:splay", "freshet.yaml:concurrency", "a.yaml:cache.file", "a.yaml:source",
                "b.yaml:source.file", "b.yaml:cache.file", "b.yaml:refresh.evry", "b.yaml:refresh.retry.from",
            ])
        #expect(configuration.invalid.mapValues(\.count) == ["a": 2, "b": 4])
    }

    @Test("at most 100 errors of a pipeline are shown, with the number of the hidden ones")
    func manyErrors() throws {
        func diagnostics(_ count: Int) -> [Diagnostic] {
            load(pipeline: pipeline() + (0..<count).map { "zebra\($0): 1\n" }.joined()).diagnostics
        }
        #expect(diagnostics(100).count == 100)
        let cut = diagnostics(103)
        #expect(cut.count == 101)
        #expect(cut.contains { $0.message == "3 more errors and warnings are not shown" })
    }

    @Test("hidden warnings do not become an error")
    func manyWarnings() {
        let signals = [String](repeating: "start", count: 103).joined(separator: ", ")
        let configuration = load(pipeline: pipeline("refresh: {on: [\(signals)]}"))
        #expect(configuration.diagnostics.count == 101)
        #expect(configuration.isValid)
        #expect(configuration.pipelines.count == 1)
    }

    @Test(
        "the distance counts insertions, deletions, replacements and swaps",
        arguments: [
            ("", "", 0), ("a", "", 1), ("every", "evry", 1), ("every", "evrey", 1), ("form", "from", 1),
            ("quiet", "quite", 1), ("kitten", "sitting", 3),
        ])
    func distance(one: String, other: String, expected: Int) {
        #expect(EditDistance.between(Array(one.utf8), Array(other.utf8)) == expected)
        #expect(EditDistance.between(Array(other.utf8), Array(one.utf8)) == expected)
    }

    @Test("a word that is too long gets no suggestion")
    func longWord() {
        let word = String(repeating: "x", count: Suggestion.maximumLength)
        #expect(Suggestion.nearest(to: word, among: [word + "y"]) == word + "y")
        #expect(Suggestion.nearest(to: word + "x", among: [word]) == nil)
    }
}
