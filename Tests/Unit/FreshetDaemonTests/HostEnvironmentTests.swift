import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("The host environment of a configuration")
struct HostEnvironmentTests {
    @Test(
        "a reload that restricts the copy takes effect immediately; a missing credential leaves the pipeline as it was"
    )
    func credential() async throws {
        let home = try Home()
        try home.configure("private", Home.printing("old", to: "private.txt"))
        try home.write("s3cret-token\n", to: "credentials/token")
        let copy = home.path + "/cache/below/current/private.txt"
        _ = try await withDaemon(home) { client in
            _ = try client.refresh("private")
            #expect(try mode(of: copy) == 0o644)
            // No server answers there, so it is not a commit that restricts the copy.
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
                let reloaded = try client.reload(configurationOnly: true)
                #expect(reloaded.summary.changed.isEmpty && reloaded.summary.removed.isEmpty)
                #expect(reloaded.diagnostics.contains { $0.severity == .error })
                #expect(try mode(of: copy) == 0o604)
            }
        }
        // The mode is restricted while the daemon does not run.
        try home.configure(
            "private",
            "source: {url: http://127.0.0.1:9/, credential: token}\ncache: {file: private.txt, mode: \"0600\"}\n")
        _ = try await withDaemon(home) { _ in
            let closed = try mode(of: copy)
            #expect(closed == 0o600)
        }
    }

    @Test("an error that only the service can see does not prevent the reload of other pipelines")
    func othersReloaded() async throws {
        let home = try Home()
        try home.configure("works", Home.printing("one", to: "works.txt"))
        try home.configure("runs", Home.printing("runs", to: "runs.txt"))
        let lacking = "source: {url: http://127.0.0.1:9/, credential: none}\n"
        _ = try await withDaemon(home) { client in
            try home.configure("works", Home.printing("two", to: "works.txt"))
            try home.configure("added", Home.printing("added", to: "added.txt"))
            try home.configure("runs", lacking + "cache: {file: runs.txt}\n")
            try home.configure("lacks", lacking + "cache: {file: lacks.txt}\n")
            let reloaded = try client.reload(configurationOnly: true)
            #expect(reloaded.summary.added == ["added"] && reloaded.summary.changed == ["works"])
            #expect(reloaded.summary.removed.isEmpty && reloaded.summary.unchanged == 1)
            let errors = reloaded.diagnostics.filter { $0.severity == .error }
            #expect(errors.count == 2 && errors.allSatisfy { $0.message.contains("credential 'none'") })
            #expect(try client.refresh("works").failure == nil && home.copy("works.txt") == "two\n")
            #expect(eventually { home.copy("added.txt") == "added\n" })
            // The running pipeline continues as before; the new one does not run, and its status has the reason.
            #expect(try client.refresh("runs").failure == nil)
            #expect(try client.status("lacks").failure?.message.contains("LoadCredential=none:") == true)
            // An error in a file refuses the whole reload.
            try home.configure("added", "nonsense: 1\n")
            try home.configure("works", Home.printing("three", to: "works.txt"))
            #expect(throws: (any Error).self) { try client.reload(configurationOnly: true) }
            #expect(try client.refresh("works").failure == nil && home.copy("works.txt") == "two\n")
            #expect(try client.status("lacks").failure != nil)
        }
    }

    @Test("a pipeline with a missing credential fails alone, and names the line to add to the unit")
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
