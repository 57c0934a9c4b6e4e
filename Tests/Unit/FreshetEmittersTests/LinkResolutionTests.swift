import FreshetEventLoop
import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("What a reference in an answer means")
struct LinkResolutionTests {
    let fetcher: SourceFetcher

    init() throws {
        let running = try RunningLoop()
        fetcher = SourceFetcher(
            http: HTTPClient(running.loop), commands: CommandRunner(running.loop, workers: WorkerPool()),
            files: FileReader(paths: PathPool(clock: ManualEngineClock())), copies: "/nowhere")
    }

    @Test(
        "References are resolved as RFC 3986, 5.4 says",
        arguments: [
            ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
            ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
            ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"), ("..", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"),
            ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("http://u:p@b:80/x", "http://b:80/x"),
        ])
    func references(reference: String, url: String) {
        #expect(fetcher.resolve(reference, against: "http://a/b/c/d;p?q")?.url == url)
    }

    @Test("Scheme, host and port are an origin, whether they are written out or not")
    func origins() {
        func address(_ url: String) -> WebAddress? { fetcher.resolve(url, against: "https://a/x") }
        #expect(address("/y")?.origin == "https://a:443")
        #expect(address("HTTPS://A:443/y")?.origin == "https://a:443")
        #expect(address("http://a/y")?.origin == "http://a:80")
        #expect(address("https://[2001:db8::1]:8443/y")?.origin == "https://[2001:db8::1]:8443")
        #expect(address("https://[2001:db8::1]:8443/y")?.host == "2001:db8::1")
    }

    @Test(
        "What is none of HTTP means nothing",
        arguments: ["file:///etc/passwd", "ftp://a/x", "http://", "https://a:99999/"])
    func nothing(reference: String) {
        #expect(fetcher.resolve(reference, against: "https://a/x") == nil)
    }
}
