import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Matches of D-Bus")
struct BusMatchTests {
    private func read(_ dbus: String, terms: LoadContext = LoadContext()) -> Configuration {
        ConfigurationLoader(
            searchPath: SearchPath(directories: ["/etc/freshet"]), terms: terms,
            fileSystem: InMemoryFileSystem(
                texts: ["/etc/freshet/pipelines/jwks.yaml": pipeline("refresh: {dbus: \(dbus)}")])
        ).load()
    }

    @Test("Every key of a match is read; a match alone is a list of one")
    func keys() throws {
        let configuration = read(
            "[{bus: session, sender: org.example.A, path-namespace: /a, interface: org.example.B, member: C, arg0: d}, "
                + "{sender: ':1.4', path: /a/b}]")
        #expect(texts(configuration.diagnostics) == [])
        #expect(
            configuration.policy?.dbus == [
                BusSignalMatch(
                    bus: .session, sender: "org.example.A", pathNamespace: "/a", interface: "org.example.B",
                    member: "C", firstArgument: "d"),
                BusSignalMatch(sender: ":1.4", path: "/a/b"),
            ])
        #expect(read("{interface: org.example.B}").policy?.dbus == [BusSignalMatch(interface: "org.example.B")])
        #expect(read("[]").policy?.dbus == [])
    }

    @Test("Faults have their places")
    func faults() {
        func faults(_ dbus: String) -> [String] { texts(read(dbus).diagnostics) }
        #expect(
            faults("[{interface: org.example.A}, {bus: sytem, sender: org.example.A}]") == [
                "jwks.yaml:3:52: error: 'bus' has to be one of system, session, not 'sytem'; did you mean 'system'?"
            ])
        #expect(
            faults("[{interfaces: org.example.A, sender: org.example.A}]") == [
                "jwks.yaml:3:19: error: unknown key 'interfaces'; did you mean 'interface'?"
            ])
        #expect(
            faults("[{member: A, path: /a}]") == [
                "jwks.yaml:3:18: error: a match has neither 'interface' nor 'sender'; name the interface of the signal, "
                    + "or who sends it"
            ])
        #expect(
            faults("[org.example.A]") == [
                "jwks.yaml:3:18: error: a match of 'dbus' has to hold keys with values, not text; its keys are bus, "
                    + "sender, path, path-namespace, interface, member, arg0"
            ])
        #expect(
            faults("[{sender: org.example.A}, {bus: system, sender: org.example.A}]") == [
                "jwks.yaml:3:43: warning: the match stands twice; once is enough"
            ])
    }

    @Test("What the bus would not take is refused at the key, or at the match if it is all of it")
    func busFault() {
        let terms = LoadContext { match in
            if match.path != nil && match.pathNamespace != nil { return "both a path and a path name space" }
            return match.member == "1A" ? "'1A' is no signal's name" : nil
        }
        let configuration = read("[{interface: org.example.A, member: 1A}, {sender: org.example.A}]", terms: terms)
        #expect(texts(configuration.diagnostics) == ["jwks.yaml:3:53: error: '1A' is no signal's name"])
        #expect(configuration.pipelines == [])
        let both = read("[{sender: org.example.A, path: /a, path-namespace: /a}]", terms: terms)
        #expect(texts(both.diagnostics) == ["jwks.yaml:3:18: error: both a path and a path name space"])
    }

    @Test("There are at most so many matches")
    func limit() {
        func matches(_ count: Int) -> String {
            "[" + (0..<count).map { "{sender: ':1.\($0)'}" }.joined(separator: ", ") + "]"
        }
        let limit = DefinitionReader.maximumBusMatches
        #expect(read(matches(limit)).policy?.dbus.count == limit)
        #expect(read(matches(limit + 1)).diagnostics.first?.message == "there are more than \(limit) matches")
    }

    @Test("Where 'on' is not configured, the daemon's default counts")
    func defaultSignals() {
        let terms = LoadContext(defaultSignals: StandardSignal.userDefault)
        #expect(read("[]", terms: terms).policy?.on == [.start, .network, .resume, .reload, .foreground])
        #expect(read("[]").policy?.on == StandardSignal.systemDefault)
        let bare = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/etc/freshet"]), terms: terms,
            fileSystem: InMemoryFileSystem(texts: ["/etc/freshet/pipelines/jwks.yaml": pipeline()])
        ).load()
        #expect(bare.policy?.on.contains(.foreground) == true)
    }
}
