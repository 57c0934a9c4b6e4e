import FreshetControl
import FreshetRender
import FreshetTestKit
import Glibc
import Testing

@testable import FreshetCommands

/// Pictures of the scenario, compared with the records in `Golden`. `FRESHET_RECORD=1` records again; look at the
/// difference, and at the SVGs with an image viewer.
@Suite struct PictureTests {
    private static let directory = #filePath.split(separator: "/").dropLast().map { "/" + $0 }.joined() + "/Golden"

    private static let graph = PipelineGraph(Scenario.descriptions, Scenario.statuses)
    private static let timeline = Timeline(Scenario.history, Scenario.descriptions, isChosen: false)
    private static let diagram = MarbleDiagram(
        Scenario.descriptions[2], Scenario.history, status: Scenario.statuses[1], most: 3)

    /// A palette and a width, by name.
    private static let readers: [(name: String, columns: Int, palette: Palette)] = [
        ("80", 80, Palette(isColourful: false)), ("200-colours", 200, Palette(isColourful: true)),
        ("C", 80, Palette(isColourful: false, charset: .ascii)),
    ]

    private static func compare(_ text: String, _ name: String) throws {
        let shown = text.map { $0 == "\u{1B}" ? "\\e" : String($0) }.joined()
        let path = "\(directory)/\(name)"
        if getenv("FRESHET_RECORD") != nil {
            try EditedFile(path).replace(with: Array(shown.utf8))
        } else {
            let recorded = try EditedFile.content(of: path).map { String(decoding: $0, as: UTF8.self) }
            #expect(shown == recorded, "\(name)")
        }
    }

    @Test("pictures on a terminal match the records, and fit its width", arguments: readers.indices)
    func texts(index: Int) throws {
        let (name, columns, palette) = Self.readers[index]
        let pictures = [
            "graph": GraphText(graph: Self.graph, palette: palette).lines(columns: columns),
            "timeline": TimelineText(timeline: Self.timeline, times: Scenario.times, palette: palette)
                .lines(columns: columns),
            "marbles": MarblesText(diagram: Self.diagram, times: Scenario.times, palette: palette)
                .lines(columns: columns),
        ]
        for (picture, lines) in pictures {
            try Self.compare(lines.map { $0 + "\n" }.joined(), "\(picture).\(name).txt")
            if !palette.isColourful {
                let wide = lines.filter { DisplayText.width(of: $0) > columns }
                #expect(wide.isEmpty, "\(picture): \(wide)")
            }
            if palette.charset == .ascii {
                #expect(lines.allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } }, "\(picture)")
            }
        }
    }

    @Test("the legend of a graph breaks only between entries", arguments: [40, 60, 80])
    func graphLegend(columns: Int) {
        let lines = GraphText(graph: Self.graph, palette: Palette(isColourful: false)).lines(columns: columns)
        let legend = lines.drop { !$0.isEmpty }.dropFirst()
        #expect(legend.allSatisfy { $0.count <= columns } && (legend.last?.hasSuffix("files and hooks") ?? false))
        #expect(legend.joined(separator: "   ").split(separator: "   ").count == 3)
    }

    @Test("a graph of a thousand chained pipelines fits a terminal")
    func thousand() {
        let descriptions = (0..<1_000).map { number in
            Scenario.description(
                "p\(1_000 + number)", ["file /etc/\(number)", "operator", "start"],
                inputs: number % 10 == 0 ? [] : ["p\(1_000 + number - 1)"])
        }
        let graph = PipelineGraph(descriptions, [])
        #expect(graph.wires.count == 2 + 1_000 + 900)
        let lines = GraphText(graph: graph, palette: Palette(isColourful: false), legend: false).lines(columns: 80)
        #expect(lines.allSatisfy { DisplayText.width(of: $0) <= 80 })
        #expect(
            lines.prefix(13).joined(separator: "\n") == """
                start
                │ operator
                │ │     file /etc/0
                ●─●─────●─◆─▶ p1000  unknown ────────────────────▶ p1000.json
                │ │ ┌───────┘ from example.com
                │ │ │         quiet 2s, at-most 10s
                │ │ │         fresh-for 1min
                │ │ │   file /etc/1
                ●─●─●───●─◆─▶ p1001  unknown ────────────────────▶ p1001.json
                │ │   ┌─────┘ from example.com
                │ │   │       quiet 2s, at-most 10s
                │ │   │       fresh-for 1min
                │ │   │ file /etc/2
                """)
    }

    @Test("wires share a column unless they overlap")
    func columns() {
        // c and d read a, b reads nothing and is read by e.
        let graph = PipelineGraph(
            [
                Scenario.description("a", ["start"]), Scenario.description("b", ["start"]),
                Scenario.description("c", ["start"], inputs: ["a"]),
                Scenario.description("d", ["file /x"], inputs: ["a"]),
                Scenario.description("e", ["start"], inputs: ["b"]),
                Scenario.description("f", ["start"], inputs: ["e"]),
            ], [])
        #expect(graph.wires.map(\.name) == ["start", "file /x", "pipeline a", "pipeline b", "pipeline e"])
        let wide = WireColumns(graph, isCrowded: false)
        #expect(wide.column == [0, 1, 2, 3, 2] && wide.count == 4 && wide.late.allSatisfy(\.isEmpty))
        let crowded = WireColumns(graph, isCrowded: true)
        #expect(crowded.column == [0, 3, 1, 2, 1] && crowded.count == 4)
        #expect(crowded.late == [[], [], [], [1], [], []])
    }

    @Test("documents match the records")
    func documents() throws {
        try Self.compare(GraphSVG(graph: Self.graph).text, "graph.svg")
        try Self.compare(GraphLanguages(graph: Self.graph).dot, "graph.dot")
        try Self.compare(GraphLanguages(graph: Self.graph).mermaid, "graph.mermaid")
        try Self.compare(TimelineSVG(timeline: Self.timeline, times: Scenario.times).text, "timeline.svg")
        try Self.compare(MarblesSVG(diagram: Self.diagram, times: Scenario.times).text, "marbles.svg")
    }

    @Test("a screen of top matches the record", arguments: readers.indices)
    func top(index: Int) throws {
        let (name, columns, palette) = Self.readers[index]
        var model = TopModel()
        model.visibleRows = 10
        model.replace(with: Scenario.statuses)
        model.daemon = DaemonStatus(
            version: "1.0", pid: 42, since: Scenario.now - 200 * Scenario.minute,
            network: "reachable via enp3s0 from 192.0.2.7", networkReachable: true,
            pipelines: PipelineCounts(Scenario.statuses.map(\.state)))
        _ = model.apply(
            .signal(
                "network", number: 4, detail: "reachable via 192.0.2.1 on enp3s0", at: Scenario.now - Scenario.minute))
        var widths: [Int] = []
        let lines = TopView(model: model, times: Scenario.times, palette: palette)
            .lines(columns: columns, rows: 16, widths: &widths)
        #expect(lines.count == 16)
        if !palette.isColourful {
            // The selected row is in reverse video, which takes no columns.
            let shown = lines.map { $0.replacing("\u{1B}[7m", with: "").replacing("\u{1B}[0m", with: "") }
            #expect(shown.allSatisfy { DisplayText.width(of: $0) <= columns }, "\(shown)")
        }
        try Self.compare(lines.map { $0 + "\n" }.joined(), "top.\(name).txt")
    }

    @Test("lanes are valid marble diagrams, with each event in its frame")
    func notation() throws {
        for episode in Self.diagram.episodes {
            for most in [30, 60, 180] {
                let frames = MarbleFrames.fitting(episode, most: most) { $0.lines(episode).first?.count ?? 0 }
                for (lane, text) in zip(frames.lanes, frames.lines(episode)) {
                    #expect(text.count <= most)
                    let read = try Marbles(text)
                    #expect(read.frames == frames.count, "\(text)")
                    for (frame, events) in lane.events.enumerated() {
                        #expect(read.marks.count { $0.frame == frame } == events.count, "\(text) at \(frame)")
                    }
                }
            }
        }
    }

    @Test("foreign text is harmless on a terminal and escaped in a document")
    func harmless() {
        var description = Scenario.description("a\u{1B}[2J<&\"", ["network"])
        description.hooks = ["echo \"#&</title>`\\\u{7}"]
        let graph = PipelineGraph([description], [])
        let documents = [
            GraphText(graph: graph, palette: Palette(isColourful: false)).lines(columns: 80).joined(),
            GraphSVG(graph: graph).text, GraphLanguages(graph: graph).dot, GraphLanguages(graph: graph).mermaid,
        ]
        for document in documents {
            #expect(!document.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" || $0.value == 0x7F })
        }
        #expect(documents[1].contains("a\\u{1b}[2J&lt;&amp;&quot;"))
        #expect(documents[2].contains(##"echo \"#&</title>`\\\\u{7}"##))
        #expect(documents[3].contains("echo #quot;#35;#amp;#lt;/title#gt;#96;"))
    }

    @Test("a combining mark does not keep the character before it from being escaped")
    func combiningMarks() {
        // A quotation mark and a combining mark are one Character.
        #expect(GraphLanguages.quoted("a\"\u{301}b\\\u{301}") == "\"a\\\"\u{301}b\\\\\u{301}\"")
        #expect(GraphLanguages.words("a\"\u{301}<\u{338}") == "\"a#quot;\u{301}#lt;\u{338}\"")
        #expect(Completion.escaped("a'\u{301}", in: "'") == "a'\\''\u{301}")
        #expect(Completion.escaped("a;\u{301}b") == "a\\;\u{301}b")
    }
}
