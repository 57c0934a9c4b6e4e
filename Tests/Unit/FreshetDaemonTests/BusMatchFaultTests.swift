import FreshetPipelines
import FreshetSystemSignals
import Testing

@testable import FreshetDaemon

@Suite("Matches of D-Bus in the daemon")
struct BusMatchFaultTests {
    @Test(
        "the names are those of the specification",
        arguments: [
            (BusSignalMatch(interface: "org.example.A"), nil),
            (BusSignalMatch(interface: "example"), "'example' is no interface: such as org.example.Interface"),
            (BusSignalMatch(sender: "org..a"), "'org..a' is no bus name: such as org.example.Service, or :1.42"),
            (BusSignalMatch(path: "/a/"), "'/a/' is no object path: such as /org/example/Object"),
            (BusSignalMatch(pathNamespace: "a"), "'a' is no object path: such as /org/example/Object"),
            (BusSignalMatch(member: "A.B"), "'A.B' is no signal's name: letters, digits and '_', and no digit first"),
        ])
    func names(_ match: BusSignalMatch, _ fault: String?) {
        #expect(BusMatch.fault(of: match) == fault)
    }

    @Test("each match has a row of its own")
    func rows() {
        let matches = [
            BusSignalMatch(interface: "org.example.A"), BusSignalMatch(interface: "org.example.A", member: "B"),
            BusSignalMatch(bus: .session, interface: "org.example.A"), BusSignalMatch(sender: "org.example.A"),
            BusSignalMatch(sender: "org.example.A", path: "/a"),
            BusSignalMatch(sender: "org.example.A", pathNamespace: "/a", firstArgument: "b"),
        ]
        #expect(
            matches.map(SharedBusMatch.row) == [
                "dbus system org.example.A.*", "dbus system org.example.A.B", "dbus session org.example.A.*",
                "dbus system from org.example.A", "dbus system from org.example.A at /a",
                "dbus system from org.example.A below /a of 'b'",
            ])
    }
}
