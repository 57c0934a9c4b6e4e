import ArgumentParser
import FreshetControl
import FreshetRender

struct Show: Verb {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Print properties as NAME=VALUE lines, for scripts.",
        discussion: """
            Without a name, prints the properties of the daemon. Properties have the names of the JSON of 'status'; \
            instants are microseconds since 1970. A property without a value is omitted; with -p, its value is empty.

            Examples:
              freshetctl show jwks -p state --value
              freshetctl show jwks -p generation.number,generation.digest
              freshetctl show -p pipelines.failed --value
            """)

    @Argument(help: "Pipelines.") var names: [String] = []
    @Option(
        name: [.customShort("p"), .customLong("property")], parsing: .singleValue,
        help: ArgumentHelp(
            "Print only this property, or all whose names begin with this and a full stop.", valueName: "name"))
    var wanted: [String] = []
    @Flag(help: "Print values without names.") var value = false
    @OptionGroup var options: GlobalOptions

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        let names = names
        guard names.isEmpty else {
            let pipelines = try session.callDaemon { () throws(ControlClient.Failure) in try client.named(names) }
            if options.json { return session.print(json: ControlMessage.Pipelines(pipelines: pipelines)) }
            return show(pipelines.map(ControlProperty.all), session)
        }
        let daemon = try session.callDaemon { () throws(ControlClient.Failure) in try client.daemon() }
        if options.json { return session.print(json: ControlMessage.Daemon(daemon: daemon)) }
        show([ControlProperty.all(of: daemon)], session)
    }

    private func show(_ blocks: [[ControlProperty]], _ session: Session) {
        let texts = blocks.map { properties in
            chosen(properties).map { property in
                DisplayText.harmless(value ? property.value : "\(property.name)=\(property.value)") + "\n"
            }.joined()
        }
        // One write for all properties, in UTF-8 on every terminal: scripts read them.
        _ = session.context.outputBytes(Array(texts.joined(separator: "\n").utf8)[...])
    }

    /// The requested properties, in the order of the options.
    private func chosen(_ properties: [ControlProperty]) -> [ControlProperty] {
        guard !wanted.isEmpty else { return properties }
        // One option may name several properties, as in systemctl.
        return wanted.flatMap { $0.split(separator: ",") }.flatMap { name in
            let found = properties.filter { $0.name == name || $0.name.hasPrefix("\(name).") }
            return found.isEmpty ? [ControlProperty(name: String(name), value: "")] : found
        }
    }
}
