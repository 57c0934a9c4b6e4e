import ConfigurationTestSupport
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("refresh.dbus")
struct BusMatchTests {
    private func read(_ dbus: String, context: LoadContext = LoadContext()) -> Configuration {
        ConfigurationLoader(
            searchPath: SearchPath(directories: ["/etc/freshet"]), context: context,
            fileSystem: InMemoryFileSystem(
                texts: ["/etc/freshet/pipelines/jwks.yaml": pipeline("refresh: {dbus: \(dbus)}")])
        ).load()
    }

    @Test("every key of a match is read; a match without a list is one element")
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

    @Test("errors have their location")
    func errors() {
        func errors(_ dbus: String) -> [String] { texts(read(dbus).diagnostics) }
        #expect(
            errors("[{interface: org.example.A}, {bus: sytem, sender: org.example.A}]") == [
                "jwks.yaml:3:52: error: 'bus' has to be one of system, session, not 'sytem'; did you mean 'system'?"
            ])
        #expect(
            errors("[{interfaces: org.example.A, sender: org.example.A}]") == [
                "jwks.yaml:3:19: error: unknown key 'interfaces'; did you mean 'interface'?"
            ])
        #expect(
            errors("[{member: A, path: /a}]") == [
                "jwks.yaml:3:18: error: a match has neither 'interface' nor 'sender'; add the interface or the sender "
                    + "of the signal"
            ])
        #expect(
            errors("[org.example.A]") == [
                "jwks.yaml:3:18: error: a match of 'dbus' has to contain keys with values, not text; its keys are bus, "
                    + "sender, path, path-namespace, interface, member, arg0"
            ])
        #expect(
            errors("[{sender: org.example.A}, {bus: system, sender: org.example.A}]") == [
                "jwks.yaml:3:43: warning: the match appears twice; remove one of them"
            ])
    }

    @Test("a match that the bus would refuse is an error at its key, or at the match as a whole")
    func busError() {
        let context = LoadContext { match in
            if match.path != nil && match.pathNamespace != nil { return "both a path and a path namespace" }
            return match.member == "1A" ? "'1A' is not a signal name" : nil
        }
        let configuration = read("[{interface: org.example.A, member: 1A}, {sender: org.example.A}]", context: context)
        #expect(texts(configuration.diagnostics) == ["jwks.yaml:3:53: error: '1A' is not a signal name"])
        #expect(configuration.pipelines == [])
        let both = read("[{sender: org.example.A, path: /a, path-namespace: /a}]", context: context)
        #expect(texts(both.diagnostics) == ["jwks.yaml:3:18: error: both a path and a path namespace"])
    }

    @Test("the number of matches is limited")
    func limit() {
        func matches(_ count: Int) -> String {
            "[" + (0..<count).map { "{sender: ':1.\($0)'}" }.joined(separator: ", ") + "]"
        }
        let limit = BusMatchReader.maximumBusMatches
        #expect(read(matches(limit)).policy?.dbus.count == limit)
        #expect(read(matches(limit + 1)).diagnostics.first?.message == "there are more than \(limit) matches")
    }

    @Test("without on, the daemon's default signals apply")
    func defaultSignals() {
        let context = LoadContext(defaultSignals: StandardSignal.userDefault)
        #expect(read("[]", context: context).policy?.on == [.start, .network, .resume, .reload, .foreground])
        #expect(read("[]").policy?.on == StandardSignal.systemDefault)
        let bare = ConfigurationLoader(
            searchPath: SearchPath(directories: ["/etc/freshet"]), context: context,
            fileSystem: InMemoryFileSystem(texts: ["/etc/freshet/pipelines/jwks.yaml": pipeline()])
        ).load()
        #expect(bare.policy?.on.contains(.foreground) == true)
    }
}
