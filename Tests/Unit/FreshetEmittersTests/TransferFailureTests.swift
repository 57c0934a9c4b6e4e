import CCurl
import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("Failures of transfers")
struct TransferFailureTests {
    func message(_ code: CURLcode, _ detail: String) -> String {
        TransferFailure(
            code: code, detail: detail, host: "example.com", received: 0, announced: nil, wasConnected: false,
            wasResolved: false, limits: HTTPClient.Options()
        ).failure.message
    }

    @Test(
        "the password of a proxy that libcurl cannot use is not in the message",
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

    @Test(
        "a certificate that is not valid yet or has expired has its own kind of failure that mentions the clock",
        arguments: [(9, RunFailure.Kind.certificateDate), (10, .certificateDate), (18, .transient), (20, .transient)])
    func certificateDate(finding: Int, kind: RunFailure.Kind) {
        let failure = TransferFailure(
            code: CURLE_PEER_FAILED_VERIFICATION, detail: "SSL certificate problem", host: "example.com", received: 0,
            announced: nil, wasConnected: false, wasResolved: true, verification: finding,
            limits: HTTPClient.Options()
        ).failure
        #expect(failure.kind == kind)
        #expect(failure.message.contains("check the clock"))
    }

    @Test(
        "a certificate for another name is a transient failure without a hint about the clock", arguments: [0, 1, 62])
    func certificateName(finding: Int) {
        let failure = TransferFailure(
            code: CURLE_PEER_FAILED_VERIFICATION, detail: "no alternative name matches", host: "example.com",
            received: 0, announced: nil, wasConnected: false, wasResolved: true, verification: finding,
            limits: HTTPClient.Options()
        ).failure
        #expect(failure.kind == .transient)
        #expect(
            failure.message == "the certificate of example.com is for another name: no alternative name matches; check "
                + "the host in the source's URL, then the certificate there")
    }

    @Test("a client certificate that cannot be used is a local failure")
    func clientCertificate() {
        let failure = TransferFailure(
            code: CURLE_SSL_CERTPROBLEM, detail: "key values mismatch", host: "example.com", received: 0,
            announced: nil, wasConnected: false, wasResolved: true, limits: HTTPClient.Options()
        ).failure
        #expect(failure.kind == .local && failure.message.contains("belong together"))
    }

    @Test("other messages of libcurl are kept")
    func words() {
        #expect(
            message(CURLE_COULDNT_RESOLVE_HOST, "Could not resolve host: example.com")
                == "could not resolve example.com: Could not resolve host: example.com")
        #expect(message(CURLE_OUT_OF_MEMORY, "").contains("too long"))
    }
}
