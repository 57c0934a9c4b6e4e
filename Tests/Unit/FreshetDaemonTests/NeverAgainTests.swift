import FreshetConfiguration
import FreshetEventLoop
import TestSupport
import Testing

@testable import FreshetDaemon

@Suite("Warnings of the check about pipelines that nothing runs again")
struct NeverAgainTests {
    @Test(
        "without times and signals that come again, there is a warning",
        arguments: [
            ("{on: []}", true), ("{on: [start, reload]}", true), ("{on: [network]}", false), ("{every: 1h}", false),
            ("{on: [], at: daily}", false), ("{on: [], files: /etc/hosts}", false), ("{fresh-for: 1min}", false),
        ])
    func neverAgain(refresh: String, isExpected: Bool) throws {
        let home = try Home()
        try home.configure("a", Home.printing("x", to: "a.txt") + "\nrefresh: \(refresh)\n")
        let loaded = ConfigurationLoader(searchPath: SearchPath(directories: [home.path + "/etc"])).load()
        try #require(loaded.pipelines.count == 1)
        let environment = HostEnvironment(
            checking: loaded, environment: [:], isRoot: false, service: .missing("freshetd does not run"),
            PathTrust(user: 0, isPersonal: true))
        #expect(environment.warnings.contains { $0.keys == ["refresh", "on"] } == isExpected)
    }
}
