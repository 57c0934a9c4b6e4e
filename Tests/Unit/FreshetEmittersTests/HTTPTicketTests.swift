import FreshetPipelines
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("HTTP client: session tickets", .hangLimit)
struct HTTPTicketTests {
    private let server: OpenSSLServer

    init() throws { server = try OpenSSLServer() }

    @Test("hundreds of session tickets before an answer are allowed, thousands end the request")
    func tickets() async throws {
        try await server.certify("/CN=origin", names: "IP:127.0.0.1")
        #expect(try await fetch(afterTickets: 300).text == "hello")
        let failure = try await failureOf { () async throws(FetchError) in try await fetch(afterTickets: 3_000) }
        #expect(failure.kind == .transient && failure.message.contains("unexpected message"), "\(failure)")
    }

    /// Requests the file from a server with TLS 1.3 that sends tickets before it reads the request.
    private func fetch(afterTickets count: Int) async throws(FetchError) -> FetchResult {
        try await server.fetch(trusting: "certificate.pem", ["-tls1_3", "-num_tickets", "\(count)"])
    }
}
