import FreshetConfiguration
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

@Suite("A check outside the service")
struct ServiceProcessTests {
    private static let status = """
        Name:\tfreshetd
        Umask:\t0022
        State:\tS (sleeping)
        Uid:\t990\t991\t991\t991
        Gid:\t980\t981\t981\t981
        Groups:\t33 44\u{20}
        """

    @Test("the user, the groups and the unit of the service are those of its process")
    func parse() throws {
        let process = try #require(
            ServiceProcess(status: Self.status, cgroup: "0::/system.slice/freshetd.service\n"))
        #expect(process.user == 991 && process.groups == [981, 33, 44] && process.unit == "freshetd.service")
        let mixed = "12:cpu:/\n1:name=systemd:/system.slice/other.service\n0::/\n"
        #expect(ServiceProcess(status: Self.status, cgroup: mixed)?.unit == "other.service")
        #expect(ServiceProcess(status: Self.status, cgroup: "0::/user.slice/session-1.scope\n")?.unit == nil)
        // Another program has the number of a daemon in a container.
        #expect(ServiceProcess(status: Self.status.replacing("freshetd", with: "bash"), cgroup: "") == nil)
        #expect(ServiceProcess(status: "", cgroup: "") == nil)
        #expect(ServiceProcess(process: Int64(getpid())) == nil)
    }

    /// The environment of a pipeline that needs the group 44 or another one, and perhaps a credential.
    private func environment(
        group: Int, credential: String = "", isRoot: Bool = false, _ service: ServiceProcess.Search
    ) throws -> HostEnvironment {
        let home = try Home()
        try home.configure(
            "a", "source: {url: http://127.0.0.1:9/\(credential)}\ncache: {file: a, group: \"\(group)\"}\n")
        let configuration = ConfigurationLocation.loader(home.options).load()
        #expect(configuration.pipelines.count == 1)
        return HostEnvironment(
            checking: configuration, environment: [:], isRoot: isRoot, service: service, home.options.trust)
    }

    @Test("a check warns about a group that the running service is not in")
    func lackingGroup() throws {
        let running = ServiceProcess.Search.found(
            try #require(ServiceProcess(status: Self.status, cgroup: "0::/system.slice/freshetd.service")))
        #expect(try environment(group: 44, running).errors.isEmpty)
        let lacking = try environment(group: 45, running)
        #expect(lacking.errors.map(\.message) == ["the service's user is not in the group '45'"])
        #expect(lacking.errors.first?.remedy?.contains("SupplementaryGroups=45") == true)
        #expect(lacking.uncheckedGroups.isEmpty)
        // Root may give files to each group.
        let root = try #require(
            ServiceProcess(status: "Name:\tfreshetd\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n", cgroup: ""))
        #expect(try environment(group: 45, .found(root)).errors.isEmpty)
    }

    @Test("a check names the groups and the credentials that it cannot see")
    func unseen() throws {
        let unseen = try environment(group: 45, credential: ", credential: token", .missing("freshetd does not run"))
        #expect(unseen.errors.isEmpty && unseen.warnings.isEmpty)
        #expect(unseen.uncheckedGroups == ["45"] && unseen.uncheckedCredentials == ["token"])
        // Root sees the credentials of a service that runs.
        let running = ServiceProcess.Search.found(
            try #require(ServiceProcess(status: Self.status, cgroup: "0::/system.slice/no-such-unit.service")))
        let seen = try environment(group: 44, credential: ", credential: token", isRoot: true, running)
        #expect(seen.uncheckedCredentials.isEmpty)
        #expect(seen.errors.map(\.message) == ["the service was started without the credential 'token'"])
    }

    @Test("a check without a daemon on the named socket, or with another program there, finds no service")
    func search() async throws {
        let home = try Home()
        #expect(ServiceProcess.find(home.options) == .missing("freshetd does not run"))
        try home.configure("a", Home.printing("a", to: "a.txt"))
        _ = try await withDaemon(home) { _ in
            // The daemon of this test is a thread of the test's process.
            #expect(ServiceProcess.find(home.options) == .missing("the process of freshetd is not visible here"))
        }
    }
}

private func mode(of path: String) throws -> mode_t {
    var status = stat()
    try #require(stat(path, &status) == 0)
    return status.st_mode & 0o777
}
