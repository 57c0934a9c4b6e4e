import FreshetConfiguration
import Testing

@testable import FreshetDaemon

@Suite("The search path of the configuration")
struct ConfigurationLocationTests {
    private func directories(
        _ environment: [String: String], user: UInt32, flags: [String] = [], existing: Set<String> = []
    ) -> [String] {
        var options = DaemonOptions()
        options.environment = environment
        options.configurationDirectories = flags
        return ConfigurationLocation.searchPath(options, user: user, exists: existing.contains).directories
    }

    private let system = SearchPath.system.directories
    private let own = "/home/ann/.config/freshet"

    @Test("a user's own directory is read if it exists, as in the user's unit; otherwise the system's directories")
    func user() {
        let home = ["HOME": "/home/ann"]
        #expect(directories(home, user: 1_000, existing: [own]) == [own])
        #expect(directories(home, user: 1_000) == system)
        let elsewhere = ["HOME": "/home/ann", "XDG_CONFIG_HOME": "/c", "XDG_CONFIG_DIRS": "/x"]
        #expect(directories(elsewhere, user: 1_000, existing: [own, "/c/freshet", "/x/freshet"]) == ["/c/freshet"])
        // A user without a home directory, as in a container.
        #expect(directories([:], user: 1_000, existing: ["/freshet", "/.config/freshet"]) == system)
    }

    @Test("flags and the service manager's variables take precedence, and root uses the system's directories")
    func others() {
        let home = ["HOME": "/home/ann"]
        #expect(directories(home, user: 0, existing: [own]) == system)
        #expect(directories(home, user: 1_000, flags: ["/etc/freshet"], existing: [own]) == ["/etc/freshet"])
        for (named, expected) in [("/etc/freshet", system), ("/srv/f", ["/srv/f"])] {
            let environment = ["HOME": "/home/ann", "CONFIGURATION_DIRECTORY": named]
            #expect(directories(environment, user: 990, existing: [own]) == expected)
        }
    }
}
