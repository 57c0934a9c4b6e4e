import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Glibc
import TestSupport
import Testing

@testable import FreshetEmitters

/// A real TLS server, openssl-s_server(1), with a certificate in a directory of the test.
struct OpenSSLServer {
    let directory: TemporaryDirectory
    private let running: RunningLoop

    init() throws {
        running = try RunningLoop()
        directory = try TemporaryDirectory()
    }

    /// Makes a certificate that its own key has signed, `certificate.pem`, valid for two days.
    func certify(_ subject: String, names: String) async throws {
        let made = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-utf8", "-days",
            "2",
            "-keyout", "key.pem", "-out", "certificate.pem", "-subj", subject, "-addext", "subjectAltName=\(names)",
        ]
        try #require(
            await openssl(made, output: "made").wait() == .exited(status: 0), "\(directory.text("made") ?? "")")
        try directory.write("hello", to: "body")
    }

    /// Requests the text `hello` from a new server, which has further options, and ends the server.
    func fetch(trusting authority: String, _ options: [String] = []) async throws(FetchError) -> FetchResult {
        let server: ChildProcess
        do {
            server = try openssl(
                ["s_server", "-accept", "127.0.0.1:0", "-cert", "certificate.pem", "-key", "key.pem"] + options + [
                    "-WWW"
                ],
                output: "log")
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
        let options = HTTPClient.Options(certificateAuthorities: directory.path(authority))
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
