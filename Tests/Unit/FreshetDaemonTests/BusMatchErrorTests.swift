import FreshetPipelines
import FreshetSystemSignals
import Testing

@testable import FreshetDaemon

@Suite("D-Bus matches in the daemon")
struct BusMatchErrorTests {
    @Test(
        "names that the D-Bus specification forbids are errors",
        arguments: [
            (BusSignalMatch(interface: "org.example.A"), nil),
            (BusSignalMatch(interface: "example"), "'example' is not an interface, such as org.example.Interface"),
            (BusSignalMatch(sender: "org..a"), "'org..a' is not a bus name, such as org.example.Service or :1.42"),
            (BusSignalMatch(path: "/a/"), "'/a/' is not an object path, such as /org/example/Object"),
            (BusSignalMatch(pathNamespace: "a"), "'a' is not an object path, such as /org/example/Object"),
            (BusSignalMatch(member: "A.B"), "'A.B' is not a signal name; use letters, digits and '_', no digit first"),
        ])
    func names(_ match: BusSignalMatch, _ error: String?) {
        #expect(BusMatch.error(of: match) == error)
    }

    @Test("each match has its own row")
    func rows() {
        let matches = [
            BusSignalMatch(interface: "org.example.A"), BusSignalMatch(interface: "org.example.A", member: "B"),
            BusSignalMatch(bus: .session, interface: "org.example.A"), BusSignalMatch(sender: "org.example.A"),
            BusSignalMatch(sender: "org.example.A", path: "/a"),
            BusSignalMatch(sender: "org.example.A", pathNamespace: "/a", firstArgument: "b"),
        ]
        #expect(
            matches.map { BusSource.name(of: $0) } == [
                "dbus system org.example.A.*", "dbus system org.example.A.B", "dbus session org.example.A.*",
                "dbus system from org.example.A", "dbus system from org.example.A at /a",
                "dbus system from org.example.A below /a of 'b'",
            ])
    }
}
