import FreshetControl
import FreshetVarlink
import Glibc
import Logging
import TestSupport
import Testing

@testable import FreshetDaemon
@testable import FreshetSystemd

@Suite("The control socket")
struct ListeningTests {
    private func item(_ name: String) -> ListenDescriptors.Item { ListenDescriptors.Item(descriptor: -1, name: name) }

    @Test("the daemon creates its own socket if none was passed")
    func none() throws {
        #expect(try ControlSocket.inheritedListener([]) == nil)
    }

    @Test("several sockets, or a socket with another name, are refused with a remedy")
    func refused() {
        #expect(throws: ActivationError.several(["varlink", "http"])) {
            try ControlSocket.inheritedListener([item("varlink"), item("http")])
        }
        #expect(throws: ActivationError.misnamed("unknown")) { try ControlSocket.inheritedListener([item("unknown")]) }
        #expect(ActivationError.several(["a", "b"]).description.contains("one ListenStream="))
        #expect(ActivationError.misnamed("a").description.contains("FileDescriptorName=varlink"))
    }

    @Test(
        "the service's URL is the home page of the package, or the manual page",
        arguments: [
            (nil, "man:freshetd(8)"), ("", "man:freshetd(8)"), ("https://example.org/ page", "man:freshetd(8)"),
            ("https://example.org/\u{1B}[2J", "man:freshetd(8)"), ("https://example.org/é", "man:freshetd(8)"),
            ("https://" + String(repeating: "a", count: 2_041), "man:freshetd(8)"),
            ("javascript:alert(1)", "man:freshetd(8)"), ("file:///etc/passwd", "man:freshetd(8)"),
            ("example.org", "man:freshetd(8)"), ("https://", "man:freshetd(8)"),
            ("HTTP://example.org", "HTTP://example.org"),
            ("https://example.org/freshet?a=1&b=%20", "https://example.org/freshet?a=1&b=%20"),
        ])
    func url(homepage: String?, expected: String) {
        let environment = homepage.map { ["FRESHET_HOMEPAGE": $0] } ?? [:]
        #expect(ControlSocket.url(environment: environment) == expected)
    }

    @Test("a client gets the service's URL")
    func info() async throws {
        struct Info: Decodable { var product: String, url: String }
        let home = try Home()
        _ = try await withDaemon(home) { _ in
            let info = try VarlinkClient(path: home.socket).call("org.varlink.service.GetInfo").decode(as: Info.self)
            #expect(info.product == "freshetd" && info.url == "man:freshetd(8)")
        }
    }

    @Test("a running daemon creates a removed socket again, each time")
    func removed() async throws {
        let home = try Home()
        let log = LogRecorder()
        let exit = try await withDaemon(home, log) { client in
            for _ in 1...2 {
                unlink(home.socket)
                #expect(eventually { access(home.socket, F_OK) == 0 })
                let others = try ControlClient(path: home.socket).daemon()
                #expect(others.pid == Int64(getpid()))
                let own = try client.daemon()
                #expect(own.pid == Int64(getpid()), "a connection from before goes on")
            }
        }
        #expect(exit == .success)
        #expect(access(home.socket, F_OK) != 0)
        #expect(
            log.lines.count {
                $0.level > .debug && $0.message == "the control socket had been removed; it was created again"
            } == 2)
    }
}
