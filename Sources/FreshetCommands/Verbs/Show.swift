import ArgumentParser
import FreshetControl
import FreshetRender

struct Show: Verb {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show properties as NAME=VALUE lines, for scripts.",
        discussion: """
            Without a name, shows those of the daemon. The names are those of the JSON that 'status' prints; instants are \
            microseconds since 1970. A property without a value is left out, or has an empty one if it was asked for.

            Examples:
              freshetctl show jwks -p state --value
              freshetctl show jwks -p generation.number,generation.digest
              freshetctl show -p pipelines.failed --value
            """)

    @Argument(help: "Pipelines.") var names: [String] = []
    @Option(
        name: [.customShort("p"), .customLong("property")], parsing: .singleValue,
        help: ArgumentHelp("Show only these: a name, or what stands before a full stop.", valueName: "name"))
    var wanted: [String] = []
    @Flag(help: "Print values without names.") var value = false
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let names = names
        guard names.isEmpty else {
            let pipelines = try session.asking { () throws(ControlClient.Failure) in try client.named(names) }
            if options.json { return session.print(json: ControlMessage.Pipelines(pipelines: pipelines)) }
            return show(pipelines.map(ControlProperty.all), session)
        }
        let daemon = try session.asking { () throws(ControlClient.Failure) in try client.daemon() }
        if options.json { return session.print(json: ControlMessage.Daemon(daemon: daemon)) }
        show([ControlProperty.all(of: daemon)], session)
    }

    private func show(_ blocks: [[ControlProperty]], _ session: Session) {
        let texts = blocks.map { properties in
            chosen(properties).map { property in
                DisplayText.harmless(value ? property.value : "\(property.name)=\(property.value)") + "\n"
            }.joined()
        }
        // One write for all of it; as it is, since it is for scripts.
        _ = session.context.outputBytes(Array(texts.joined(separator: "\n").utf8)[...])
    }

    /// In the order in which they were asked for.
    private func chosen(_ properties: [ControlProperty]) -> [ControlProperty] {
        guard !wanted.isEmpty else { return properties }
        // As with systemctl, one option may name several.
        return wanted.flatMap { $0.split(separator: ",") }.flatMap { name in
            let found = properties.filter { $0.name == name || $0.name.hasPrefix("\(name).") }
            return found.isEmpty ? [ControlProperty(name: String(name), value: "")] : found
        }
    }
}
