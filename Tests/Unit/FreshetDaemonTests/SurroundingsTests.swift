import FreshetControl
import Glibc
import Testing

@testable import FreshetDaemon

@Suite("What a configuration needs of the service's surroundings")
struct SurroundingsTests {
    @Test("a reload that adds a credential closes the copy at once; one that was not handed over refuses it")
    func credential() async throws {
        let home = try Home()
        try home.configure("private", Home.printing("old", to: "private.txt"))
        try home.write("s3cret-token\n", to: "token")
        let copy = home.path + "/cache/below/current/private.txt"
        _ = try await withDaemon(home) { client in
            _ = try client.refresh("private")
            #expect(try mode(of: copy) == 0o644)
            // Nothing answers there: it is not a commit that closes the copy.
            let source = "source: {url: http://127.0.0.1:9/, credential: token}"
            try home.configure("private", source + "\ncache: {file: private.txt}\n")
            #expect(try client.reload(configurationOnly: true).summary.changed == ["private"])
            #expect(try mode(of: copy) == 0o640)
            #expect(home.copy("private.txt") == "old\n")
            try home.configure("private", source + "\ncache: {file: private.txt, mode: \"0604\"}\n")
            _ = try client.reload(configurationOnly: true)
            #expect(try mode(of: copy) == 0o604)
            for wrong in [
                source.replacing("token", with: "other") + "\ncache: {file: private.txt}\n",
                source + "\ncache: {file: private.txt, group: no-such-group}\n",
            ] {
                try home.configure("private", wrong)
                #expect(throws: (any Error).self) { try client.reload(configurationOnly: true) }
                #expect(try mode(of: copy) == 0o604)
            }
        }
        // Closed while the daemon was away.
        try home.configure(
            "private",
            "source: {url: http://127.0.0.1:9/, credential: token}\ncache: {file: private.txt, mode: \"0600\"}\n")
        _ = try await withDaemon(home) { _ in
            let closed = try mode(of: copy)
            #expect(closed == 0o600)
        }
    }

    @Test("a pipeline whose credential was not handed over fails alone, and names the line that is missing")
    func missingCredential() async throws {
        let home = try Home()
        try home.configure("works", Home.printing("hello", to: "works.txt"))
        try home.configure(
            "lacks", "source: {url: http://127.0.0.1:9/, credential: api-token}\ncache: {file: lacks.txt}\n")
        _ = try await withDaemon(home) { client in
            let status = try client.status("lacks")
            #expect(status.state == .failed)
            #expect(status.failure?.message.contains("LoadCredential=api-token:") == true)
            #expect(try client.refresh("works").failure == nil)
        }
    }
}

private func mode(of path: String) throws -> mode_t {
    var status = stat()
    try #require(stat(path, &status) == 0)
    return status.st_mode & 0o777
}
