import FreshetModel
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("Pages: the request for a URL that a page names")
struct PageOriginTests {
    private typealias Facts = PageMachine.Facts

    private static let post = HTTPSource.Method.post(body: "{}", contentType: "application/json")
    /// With everything that a request can have.
    private let source = HTTPSource(
        url: "https://a.example/1", headers: [.bearer("token")], host: "a.example", method: Self.post,
        unixSocket: "/run/api.sock", clientCertificate: .init(certificate: "own"),
        certificateAuthority: "/etc/ssl/own.pem")

    private func machine(
        _ next: NextRule, _ source: HTTPSource, load: PageLoad = .all, from bookmark: PageBookmark? = nil
    ) -> PageMachine {
        PageMachine(
            PagesDefinition(next: next, load: load, sameOrigin: false), of: source, from: bookmark,
            retry: RetryPolicy(), jitter: Jitter(seed: 1)
        ) { ScriptedURLs.resolve($0, against: $1) }
    }

    private func second(_ next: NextRule, _ source: HTTPSource, by facts: Facts) throws -> HTTPSource? {
        var machine = machine(next, source)
        guard case .load(let request) = try machine.loaded(facts) else { return nil }
        return request.source
    }

    @Test("within the origin it is the source's request, by GET: through its socket, with its certificates")
    func home() throws {
        var expected = source
        expected.url = "https://a.example/2"
        expected.method = .get
        #expect(try second(.link, source, by: Facts(items: 1, links: ["</2>; rel=next"])) == expected)
        #expect(try second(.url(".next"), source, by: Facts(items: 1, next: "/2")) == expected)
    }

    @Test("a URL that only changes a parameter has the source's whole request")
    func parameter() throws {
        var expected = source
        expected.url = "https://a.example/1?c=x"
        let rule = NextRule.cursor(CursorRule(".c", parameter: "c"))
        #expect(try second(rule, source, by: Facts(items: 1, next: "x")) == expected)
    }

    @Test("at another origin the request has only the URL, the proxy and the limits on redirects and bodies")
    func away() throws {
        var source = source
        source.unixSocket = nil
        let facts = Facts(items: 1, next: "https://b.example/2")
        var expected = HTTPSource(url: "https://b.example/2", host: "b.example")
        #expect(try second(.url(".next"), source, by: facts) == expected)
        for (proxy, redirects) in [(HTTPSource.Proxy.none, HTTPSource.Redirects.none), (.url("http://p"), .sameOrigin)]
        {
            (source.proxy, source.redirects, source.allowsUnframed) = (proxy, redirects, true)
            (expected.proxy, expected.redirects, expected.allowsUnframed) = (proxy, redirects, true)
            #expect(try second(.url(".next"), source, by: facts) == expected)
        }
    }

    @Test("an interrupted set goes on with the request of the definition that goes on")
    func goesOn() throws {
        var source = source
        source.unixSocket = nil
        for next in ["/2", "https://b.example/2"] {
            let facts = Facts(items: 1, next: next)
            var interrupted = machine(.url(".next"), source)
            _ = try interrupted.loaded(facts)
            var changed = source
            (changed.proxy, changed.redirects) = (.url("http://proxy.example:3128"), .none)
            var machine = machine(.url(".next"), changed)
            #expect(machine.goOn(at: interrupted.position).source == (try second(.url(".next"), changed, by: facts)))
        }
    }

    @Test("a source that is fetched through a socket leads to no other origin, whatever is allowed")
    func socket() {
        var machine = machine(.url(".next"), source)
        #expect(
            throws: RunFailure(
                .content,
                "page 1 is fetched through a socket and names a next page at https://b.example, another origin; "
                    + "not followed")
        ) { try machine.loaded(Facts(items: 1, next: "https://b.example/2")) }
    }

    @Test("a continued set has the requests that it would have had")
    func rest() throws {
        for next in [NextRule.url(".next"), .cursor(CursorRule(".c", parameter: "c"))] {
            let facts = Facts(items: 1, next: "/2")
            var resting = machine(next, source, load: .first(1))
            guard case .rest(let bookmark) = try resting.loaded(facts) else {
                Issue.record("it does not rest")
                return
            }
            let on = machine(next, source, load: .first(1), from: bookmark)
            #expect(try on.first.source == second(next, source, by: facts))
        }
    }
}
