import FreshetModel
import FreshetPipelines
import Glibc
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("HTTP client: certificates that are refused", .hangLimit)
struct PeerCertificateTests {
    private let server: OpenSSLServer

    init() throws { server = try OpenSSLServer() }

    @Test("the failure has the names and dates of a certificate for another name; a trusted one is accepted")
    func otherName() async throws {
        try await server.certify(
            "/CN=a.example/O=Example", names: "DNS:a.example,DNS:*.b.example,IP:192.0.2.1,IP:2001:db8::1")
        let failure = try await failure(trusting: "certificate.pem")
        #expect(failure.message.hasPrefix("the certificate of 127.0.0.1 is for another name"))
        let certificate = try #require(failure.certificate)
        #expect(certificate.depth == 0)
        #expect(certificate.subject == "O=Example,CN=a.example" && certificate.issuer == certificate.subject)
        #expect(certificate.names == ["a.example", "*.b.example", "192.0.2.1", "2001:db8::1"])
        let (begin, end) = (try #require(certificate.notBefore), try #require(certificate.notAfter))
        #expect(begin.duration(to: end) == .seconds(2 * 86_400))
        #expect(abs(begin.nanoseconds / 1_000_000_000 - Int64(time(nil))) < 600)
        try await server.certify("/CN=origin", names: "IP:127.0.0.1")
        #expect(try await server.fetch(trusting: "certificate.pem").text == "hello")
    }

    @Test("texts of a certificate of an unknown authority are escaped and bounded, and so is the number of names")
    func hostile() async throws {
        try await server.certify("/CN=trusted", names: "IP:127.0.0.1")
        rename(server.directory.path("certificate.pem"), server.directory.path("trusted.pem"))
        let names = (0..<100).map {
            "DNS:\(String(repeating: "n", count: 60)).\(String(repeating: "m", count: 60))-\($0)"
        }
        try await server.certify(
            "/CN=a\u{1B}[2J\u{202E}b/O=\(String(repeating: "o", count: 64))/OU=\(String(repeating: "ü", count: 64))"
                + String(repeating: "/DC=\(String(repeating: "d", count: 60))", count: 20),
            names: names.joined(separator: ","))
        let failure = try await failure(trusting: "trusted.pem")
        #expect(failure.message.hasPrefix("the certificate of 127.0.0.1 is not trusted"))
        let certificate = try #require(failure.certificate)
        #expect(certificate.names.count == ServerCertificate.mostNames)
        #expect(certificate.names.allSatisfy { $0.utf8.count <= ServerCertificate.mostBytes + 3 })
        for text in [certificate.subject, certificate.issuer] {
            #expect(text.utf8.count <= ServerCertificate.mostBytes + 3)
            #expect(!text.unicodeScalars.contains { $0.value < 0x20 || $0 == "\u{202E}" })
        }
    }

    private func failure(trusting authority: String) async throws -> RunFailure {
        try await failureOf { () async throws(FetchError) in try await server.fetch(trusting: authority) }
    }
}
