import FreshetControl
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
