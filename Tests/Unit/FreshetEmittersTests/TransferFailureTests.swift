import CCurl
import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("Why a request was given up")
struct TransferFailureTests {
    func message(_ code: CURLcode, _ detail: String) -> String {
        TransferFailure(
            code: code, detail: detail, host: "example.com", received: 0, announced: nil, wasConnected: false,
            wasResolved: false, limits: HTTPClient.Options()
        ).failure.message
    }

    @Test(
        "the password of a proxy that libcurl cannot use is not repeated",
        arguments: [
            ("Unsupported proxy syntax in 'http://user:p@ss word@bad host:9'", "syntax in 'http://…@bad host:9'"),
            ("Unsupported proxy scheme for 'gopher://user:p@ssword@proxy'", "scheme for 'gopher://…@proxy'"),
            ("Unsupported proxy syntax in 'user:p@ssword@bad host'", "syntax in '…@bad host'"),
        ])
    func proxy(detail: String, shown: String) {
        let message = message(CURLE_COULDNT_RESOLVE_PROXY, detail)
        #expect(message.hasSuffix(shown))
        #expect(!message.contains("p@ss") && !message.contains("user"))
    }

    @Test("libcurl's words are kept otherwise")
    func words() {
        #expect(
            message(CURLE_COULDNT_RESOLVE_HOST, "Could not resolve host: example.com")
                == "could not resolve example.com: Could not resolve host: example.com")
        #expect(message(CURLE_OUT_OF_MEMORY, "").contains("too long"))
    }
}
