import ArgumentParser
import FreshetControl
import FreshetRender

struct Graph: Verb {
    static let configuration = CommandConfiguration(
        commandName: "graph",
        abstract: "Draw how signals lead to pipelines, files and hooks.",
        discussion: """
            A pipeline that reads another one, or runs after it, is drawn below it. The colour of a name shows the \
            state. The formats dot (Graphviz), svg and mermaid are for documents. With --json, prints the connections \
            of the pipelines.

            Examples:
              freshetctl graph
              freshetctl graph homepage catalogue
              freshetctl graph --format svg > pipelines.svg
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case text, dot, svg, mermaid
    }

    @Argument(help: "Pipelines, or patterns; without a name, all.") var names: [String] = []
    @Option(help: "Draw as text, dot, svg or mermaid.") var format = Format.text
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let names = names.isEmpty ? nil : names
        let (descriptions, statuses) = try session.callDaemon { () throws(ControlClient.Failure) in
            (try client.descriptions(names), try client.pipelines(names))
        }
        if options.json { return session.print(json: ControlMessage.Descriptions(pipelines: descriptions)) }
        let graph = PipelineGraph(descriptions, statuses, session.pathUnits)
        switch format {
        case .dot: session.write(GraphLanguages(graph: graph).dot)
        case .mermaid: session.write(GraphLanguages(graph: graph).mermaid)
        case .svg: session.write(GraphSVG(graph: graph).text)
        case .text:
            guard !graph.rows.isEmpty else { return session.message(Self.nothing(names)) }
            let picture = GraphText(graph: graph, palette: session.palette, legend: !options.noLegend)
            session.show(picture.lines(columns: session.pictureColumns))
        }
    }

    /// The message if there is nothing to draw.
    private static func nothing(_ names: [String]?) -> String {
        guard let names else { return "There are no pipelines." }
        return DisplayText.harmless("There is no pipeline \(names.map { "'\($0)'" }.joined(separator: " or ")).")
    }
}

extension Session {
    /// The width of a picture: that of the terminal, else 80 columns.
    var pictureColumns: Int { max(40, context.columns ?? 80) }

    /// Prints a picture.
    func show(_ lines: [String]) { context.output(lines.map { $0 + "\n" }.joined()) }

    /// Prints a document, in UTF-8 on every terminal.
    func write(_ document: String) { _ = context.outputBytes(Array(document.utf8)[...]) }
}
