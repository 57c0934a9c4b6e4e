import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Glibc
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("HTTP client: session tickets", .hangLimit)
struct HTTPTicketTests {
    private let running: RunningLoop
    private let directory: TemporaryDirectory

    init() throws {
        running = try RunningLoop()
        directory = try TemporaryDirectory()
    }

    @Test("hundreds of session tickets before an answer are allowed, thousands end the request")
    func tickets() async throws {
        let new = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem",
            "-out", "certificate.pem", "-subj", "/CN=origin", "-addext", "subjectAltName=IP:127.0.0.1",
        ]
        try #require(await openssl(new, output: "certificate").wait() == .exited(status: 0))
        try directory.write("hello", to: "body")
        #expect(try await fetch(afterTickets: 300).text == "hello")
        let failure = try await failureOf { () async throws(FetchError) in try await fetch(afterTickets: 3_000) }
        #expect(failure.kind == .transient && failure.message.contains("unexpected message"), "\(failure)")
    }

    /// Requests the file from a server with TLS 1.3 that sends tickets before it reads the request.
    private func fetch(afterTickets count: Int) async throws(FetchError) -> FetchResult {
        let server: ChildProcess
        do {
            server = try openssl(
                [
                    "s_server", "-accept", "127.0.0.1:0", "-cert", "certificate.pem", "-key", "key.pem", "-tls1_3",
                    "-num_tickets", "\(count)", "-WWW",
                ], output: "log")
        } catch {
            throw .failed(RunFailure(.local, "no server: \(error)"))
        }
        defer { server.signal(SIGKILL) }
        var port = ""
        let isReady = await eventually {
            let line = directory.text("log")?.split(separator: "\n").first { $0.hasPrefix("ACCEPT ") }
            port = String(line?.split(separator: ":").last ?? "")
            return !port.isEmpty
        }
        #expect(isReady)
        let options = HTTPClient.Options(certificateAuthorities: directory.path("certificate.pem"))
        var source = HTTPSource(url: "https://127.0.0.1:\(port)/body", host: "127.0.0.1")
        source.allowsUnframed = true
        return try await HTTPClient(running.loop, options: options).fetch(
            source, for: FetchRequest(source: .http(source)))
    }

    private func openssl(_ arguments: [String], output: String) throws -> ChildProcess {
        let null = open("/dev/null", O_RDONLY | O_CLOEXEC)
        let file = open(directory.path(output), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer { close(null); close(file) }
        return try ChildProcess(
            running.loop, .init(path: "/usr/bin/openssl", arguments: arguments, directory: directory.path), input: null,
            output: file, error: file)
    }
}
