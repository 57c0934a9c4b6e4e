import FreshetEventLoop
import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("Resolving references in answers")
struct LinkResolutionTests {
    let fetcher: SourceFetcher

    init() throws {
        let running = try RunningLoop()
        fetcher = SourceFetcher(
            http: HTTPClient(running.loop), commands: CommandRunner(running.loop, workers: WorkerPool()),
            files: FileReader(paths: PathPool(clock: ManualEngineClock())), copies: "/nowhere")
    }

    @Test(
        "References are resolved as in RFC 3986, 5.4",
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

    @Test("An origin has a scheme, a host and a port, which may be implicit in the URL")
    func origins() {
        func address(_ url: String) -> WebAddress? { fetcher.resolve(url, against: "https://a/x") }
        #expect(address("/y")?.origin == "https://a:443")
        #expect(address("HTTPS://A:443/y")?.origin == "https://a:443")
        #expect(address("http://a/y")?.origin == "http://a:80")
        #expect(address("https://[2001:db8::1]:8443/y")?.origin == "https://[2001:db8::1]:8443")
        #expect(address("https://[2001:db8::1]:8443/y")?.host == "2001:db8::1")
    }

    @Test(
        "A reference that is not a valid HTTP URL is not resolved",
        arguments: ["file:///etc/passwd", "ftp://a/x", "http://", "https://a:99999/"])
    func nothing(reference: String) {
        #expect(fetcher.resolve(reference, against: "https://a/x") == nil)
    }
}
