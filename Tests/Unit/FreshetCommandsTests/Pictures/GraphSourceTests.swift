import FreshetControl
import FreshetRender
import Testing

@testable import FreshetCommands

@Suite struct GraphSourceTests {
    @Test(
        "the origin of a pipeline is the host of its URL, or its command or path",
        arguments: [
            ("https://id.example.com/.well-known/jwks.json", "id.example.com"),
            ("http://192.0.2.9:8480/a?…", "192.0.2.9:8480"), ("http://[2001:db8::1]:80/x", "[2001:db8::1]:80"),
            ("/usr/lib/example/list --all", "/usr/lib/example/list --all"), ("pipeline catalogue", nil),
            ("a: https://a.example.com/x, b: https://b.example.com/y, c: pipeline d", "a.example.com, b.example.com"),
            ("a: https://a.example.com/x, b: https://a.example.com/y", "a.example.com"),
            ("/bin/echo a: b, c", "/bin/echo a: b, c"), ("", ""),
        ] as [(String, String?)])
    func origin(source: String, expected: String?) { #expect(OriginText.text(of: source) == expected) }

    @Test("path units are read from the properties that systemctl prints")
    func pathUnits() {
        let units = PathUnit.parse(
            """
            Paths=/run/systemd/ask-password (DirectoryNotEmpty)
            Triggers=systemd-ask-password-wall.service

            Triggers=reload.service
            Paths=/var/cache/freshet/current/a b (PathChanged)
            Paths=/etc/x (PathExists)

            Triggers=
            Paths=/y (PathChanged)

            nonsense
            """)
        #expect(
            units == [
                PathUnit(unit: "systemd-ask-password-wall.service", path: "/run/systemd/ask-password"),
                PathUnit(unit: "reload.service", path: "/var/cache/freshet/current/a b"),
                PathUnit(unit: "reload.service", path: "/etc/x"),
            ])
    }

    @Test("a path unit of a published file is beside the hooks, once")
    func reacting() {
        let description = Scenario.description("a", files: ["/c/a/1", "/c/a/2"], hooks: ["reload nginx.service"])
        let units = [
            PathUnit(unit: "x.service", path: "/c/a/1"), PathUnit(unit: "x.service", path: "/c/a/2"),
            PathUnit(unit: "y.service", path: "/etc/other"),
        ]
        #expect(PipelineGraph([description], [], units).rows.first?.hooks == ["reload nginx.service", "x.service"])
    }

    @Test("a graph shows the error of what failed, and the origin, in all formats")
    func error() {
        var status = Scenario.status("flags", .failed)
        status.failure = FailureStatus(message: "the origin answered 503 Service Unavailable", since: 0, attempts: 1)
        let graph = PipelineGraph([Scenario.description("flags", ["network"])], [status])
        let text = GraphText(graph: graph, palette: Palette(isColourful: false)).lines(columns: 100)
            .joined(separator: "\n")
        for part in ["from example.com", "503"] {
            #expect(text.contains(part), "\(text)")
            #expect(GraphSVG(graph: graph).text.contains(part) && GraphLanguages(graph: graph).dot.contains(part))
            #expect(GraphLanguages(graph: graph).mermaid.contains(part))
        }
    }

    @Test("a long name is complete where files and hooks leave the columns")
    func longName() {
        let name = "threat-feed-of-the-national-centre-for-security"
        let graph = PipelineGraph([Scenario.description(name, ["network"], files: ["/c/x"])], [])
        let lines = GraphText(graph: graph, palette: Palette(isColourful: false)).lines(columns: 80)
        #expect(lines.contains { $0.contains("\(name)  unknown") } && lines.allSatisfy { $0.count <= 80 }, "\(lines)")
        #expect(GraphSVG(graph: graph).text.contains(">\(name)<"))
    }
}
