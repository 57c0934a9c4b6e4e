import Testing

@testable import FreshetSystemSignals

@Suite("A match of bus signals")
struct BusMatchTests {
    @Test("becomes a rule according to the specification, with apostrophes outside of apostrophes")
    func rule() throws {
        let match = try BusMatch(
            sender: "org.example.A", path: "/a/b", interface: "org.example.I", member: "M", firstArgument: #"it's \ "#)
        #expect(
            match.rule == #"type='signal',sender='org.example.A',path='/a/b',interface='org.example.I',"#
                + #"member='M',arg0='it'\''s \ '"#)
        #expect(try BusMatch(pathNamespace: "/").rule == "type='signal',path_namespace='/'")
    }

    @Test(
        "accepts names according to the specification",
        arguments: [":1.42", "org.example.Service", "org.example-2.Service", "org._7zip.A", ":org.1.2"])
    func senders(_ name: String) throws {
        #expect(try BusMatch(sender: name).sender == name)
    }

    @Test(
        "refuses other names of senders",
        arguments: ["", "org", ".org.a", "org..a", "org.a.", "org.1a", ":", "org.a b", "org.a'b", "org.ä", ":1"])
    func badSenders(_ name: String) {
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch(sender: name) }
    }

    @Test("refuses invalid interfaces and members", arguments: ["", "a b", "1a", "a-b", "a'", "é"])
    func badNames(_ name: String) {
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch(member: name) }
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch(interface: "org." + name) }
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch(interface: "org") }
    }

    @Test("refuses invalid paths", arguments: ["", "a", "/a/", "//", "/a//b", "/a-b", "/a'"])
    func badPaths(_ path: String) {
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch(path: path) }
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch(pathNamespace: path) }
    }

    @Test("refuses a match of everything, two paths, and local signals of a connection")
    func useless() {
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch() }
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch(path: "/a", pathNamespace: "/a") }
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch(interface: "org.freedesktop.DBus.Local") }
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch(path: "/org/freedesktop/DBus/Local") }
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch(member: "A", firstArgument: "a\0b") }
    }

    @Test("accepts 255 bytes of a name and 1,024 of a rule, and no more")
    func limits() throws {
        let name = "org." + String(repeating: "a", count: BusMatch.maximumNameLength - 4)
        #expect(try BusMatch(sender: name).sender == name)
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch(sender: name + "a") }
        #expect(try BusMatch(member: String(name.dropFirst(4) + "aaaa")).member?.count == 255)
        #expect(throws: BusMatch.InvalidMatch.self) { try BusMatch(member: String(name.dropFirst(4) + "aaaaa")) }
        let frame = try BusMatch(firstArgument: "").rule.utf8.count
        let argument = String(repeating: "x", count: BusMatch.maximumRuleLength - frame)
        #expect(try BusMatch(firstArgument: argument).rule.utf8.count == BusMatch.maximumRuleLength)
        let error = try #require(throws: BusMatch.InvalidMatch.self) { try BusMatch(firstArgument: argument + "x") }
        #expect(error.description.contains("1024"))
    }

    @Test("has a path namespace that contains the path and everything below it")
    func pathNamespace() throws {
        let match = try BusMatch(pathNamespace: "/a/b")
        #expect(match.accepts(path: "/a/b") && match.accepts(path: "/a/b/c"))
        #expect(!match.accepts(path: "/a/bc") && !match.accepts(path: "/a"))
        #expect(try BusMatch(pathNamespace: "/").accepts(path: "/a"))
    }
}

@Suite("Retries of a bus")
struct BusReconnectionTests {
    @Test("a bus that never accepted us gets eight attempts with growing pauses, then no more")
    func unproven() {
        var reconnection = BusReconnection()
        let now = ContinuousClock.Instant.now
        var pauses: [Duration] = []
        while let pause = reconnection.ended(at: now) { pauses.append(pause) }
        #expect(pauses == [0.25, 0.5, 1, 2, 4, 8, 16].map { .seconds($0) })
        #expect(pauses.count + 1 == BusReconnection.unprovenAttempts)
        #expect(reconnection.ended(at: now) == nil)
    }

    @Test("a bus that accepts us and disconnects immediately counts as refusing")
    func dropping() {
        var reconnection = BusReconnection()
        var now = ContinuousClock.Instant.now
        var attempts = 0
        while attempts < 100 {
            reconnection.becameReady(at: now)
            now += BusReconnection.proof - .milliseconds(1)
            attempts += 1
            if reconnection.ended(at: now) == nil { break }
        }
        #expect(attempts == BusReconnection.unprovenAttempts)
    }

    @Test("a bus that worked is retried without end, at most every 30 s; another long connection resets the pauses")
    func proven() {
        var reconnection = BusReconnection()
        var now = ContinuousClock.Instant.now
        for _ in 0..<2 {
            reconnection.becameReady(at: now)
            now += BusReconnection.proof
            #expect(reconnection.ended(at: now) == BusReconnection.firstPause)
            for _ in 0..<6 { _ = reconnection.ended(at: now) }
            for _ in 0..<100 { #expect(reconnection.ended(at: now) == BusReconnection.longestPause) }
        }
    }
}

@Suite("The address of a bus")
struct BusAddressTests {
    @Test("comes from the environment, or is the default; a session bus may have no address")
    func places() {
        #expect(BusAddress.of(.system, environment: { _ in nil }) == "unix:path=/run/dbus/system_bus_socket")
        #expect(BusAddress.of(.system, environment: { $0 == "DBUS_SYSTEM_BUS_ADDRESS" ? "x" : nil }) == "x")
        #expect(BusAddress.of(.session, environment: { $0 == "DBUS_SESSION_BUS_ADDRESS" ? "y" : "/run/z" }) == "y")
        #expect(
            BusAddress.of(.session, environment: { $0 == "XDG_RUNTIME_DIR" ? "/run/a b,c" : "" })
                == "unix:path=/run/a%20b%2cc/bus")
        #expect(BusAddress.of(.session, environment: { _ in nil }) == nil)
    }
}
