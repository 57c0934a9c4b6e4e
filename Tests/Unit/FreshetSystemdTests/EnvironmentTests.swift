import Testing

@testable import FreshetSystemd

@Suite("Descriptors from the service manager")
struct ListenDescriptorsTests {
    @Test("are taken in order, with their names")
    func named() {
        let environment = ["LISTEN_PID": "77", "LISTEN_FDS": "3", "LISTEN_FDNAMES": "varlink:other:varlink"]
        let descriptors = ListenDescriptors(environment: environment, process: 77)
        #expect(descriptors.items.map(\.descriptor) == [3, 4, 5])
        #expect(descriptors.descriptors(named: "varlink") == [3, 5])
        #expect(descriptors.descriptors(named: "none").isEmpty)
    }

    @Test("for another process are ignored")
    func inherited() {
        let environment = ["LISTEN_PID": "77", "LISTEN_FDS": "1"]
        #expect(ListenDescriptors(environment: environment, process: 78).items.isEmpty)
    }

    @Test("without a name are called unknown")
    func unnamed() {
        let environment = ["LISTEN_PID": "77", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "one"]
        #expect(ListenDescriptors(environment: environment, process: 77).items.map(\.name) == ["one", "unknown"])
    }

    @Test("of a broken environment are empty", arguments: ["0", "-1", "x", "", "1025", "99999999999999999999"])
    func broken(_ count: String) {
        #expect(ListenDescriptors(environment: ["LISTEN_PID": "77", "LISTEN_FDS": count], process: 77).items.isEmpty)
    }

    @Test("are accepted up to the limit")
    func limit() {
        let environment = ["LISTEN_PID": "77", "LISTEN_FDS": "\(ListenDescriptors.limit)"]
        #expect(ListenDescriptors(environment: environment, process: 77).items.count == ListenDescriptors.limit)
    }
}

@Suite("Service directories")
struct ServiceDirectoriesTests {
    @Test("are the service manager's if it sets them; of several the first")
    func manager() throws {
        let directories = try ServiceDirectories(
            name: "freshet",
            environment: [
                "STATE_DIRECTORY": "/var/lib/freshet", "CACHE_DIRECTORY": "/var/cache/freshet:/var/cache/more",
                "RUNTIME_DIRECTORY": "/run/freshet", "CONFIGURATION_DIRECTORY": "/etc/freshet",
            ], userID: 990)
        #expect(directories.state == "/var/lib/freshet")
        #expect(directories.cache == "/var/cache/freshet")
        #expect(directories.runtime == "/run/freshet")
        #expect(directories.configuration == ["/etc/freshet", "/run/freshet-config", "/usr/lib/freshet"])
    }

    @Test("of root are the system's")
    func root() throws {
        let directories = try ServiceDirectories(
            name: "freshet", environment: ["HOME": "/root", "XDG_STATE_HOME": "/root/s"], userID: 0)
        #expect(directories.state == "/var/lib/freshet")
        #expect(directories.cache == "/var/cache/freshet")
        #expect(directories.runtime == "/run/freshet")
        #expect(directories.configuration == ["/etc/freshet", "/run/freshet-config", "/usr/lib/freshet"])
    }

    @Test("of a user are below the home directory")
    func user() throws {
        let directories = try ServiceDirectories(name: "freshet", environment: ["HOME": "/home/ann"], userID: 1_000)
        #expect(directories.state == "/home/ann/.local/state/freshet")
        #expect(directories.cache == "/home/ann/.cache/freshet")
        #expect(directories.runtime == "/run/user/1000/freshet")
        #expect(directories.configuration == ["/home/ann/.config/freshet", "/etc/xdg/freshet"])
    }

    @Test(
        "of a system service are used for root, or with a configuration below /etc",
        arguments: [
            (0, nil, true), (990, "/etc/freshet", true), (1_000, "/home/ann/.config/freshet", false),
            (1_000, nil, false), (1_000, "etc/freshet", false),
        ])
    func system(user: UInt32, configuration: String?, isSystem: Bool) {
        var environment = ["HOME": "/home/ann"]
        environment["CONFIGURATION_DIRECTORY"] = configuration
        #expect(ServiceDirectories.isSystemService(environment: environment, userID: user) == isSystem)
    }

    @Test("of a user follow the XDG variables, except relative ones")
    func xdg() throws {
        let directories = try ServiceDirectories(
            name: "freshet",
            environment: [
                "HOME": "/home/ann", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "relative", "XDG_RUNTIME_DIR": "/r",
                "XDG_CONFIG_HOME": "/c", "XDG_CONFIG_DIRS": "/x:y:/z",
            ], userID: 1_000)
        #expect(directories.state == "/s/freshet")
        #expect(directories.cache == "/home/ann/.cache/freshet")
        #expect(directories.runtime == "/r/freshet")
        #expect(directories.configuration == ["/c/freshet", "/x/freshet", "/z/freshet"])
    }

    @Test("without a home directory throw an error with the variable to set")
    func homeless() {
        #expect(throws: ServiceDirectoriesError.noHome(variable: "STATE_DIRECTORY")) {
            try ServiceDirectories(name: "freshet", environment: [:], userID: 1_000)
        }
        #expect(ServiceDirectoriesError.noHome(variable: "STATE_DIRECTORY").description.contains("STATE_DIRECTORY"))
    }
}

@Suite("Machine identity")
struct MachineIdentityTests {
    @Test("is the same at each reading")
    func stable() {
        let first = MachineIdentity.read()
        #expect(first == MachineIdentity.read())
        if let first {
            #expect(first.bytes.count == 16)
            #expect(first.bytes.contains { $0 != 0 })
        }
    }
}
