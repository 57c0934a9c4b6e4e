/// A path unit of systemd that reacts to a file (systemd.path(5)).
struct PathUnit: Hashable, Sendable {
    /// The unit that is started, such as `reload-nginx.service`.
    var unit: String
    /// The file whose change starts it.
    var path: String

    /// The most path units: a host has a few dozen.
    private static let most = 10_000

    /// - Parameter properties: the output of `systemctl show --property=Triggers,Paths '*.path'`: blocks of lines,
    ///   with an empty line between two units. A line is `Triggers=UNIT` or `Paths=PATH (PathChanged)`.
    static func parse(_ properties: String) -> [PathUnit] {
        var units: [PathUnit] = []
        for block in properties.split(separator: "\n\n") {
            var unit: Substring?
            var paths: [Substring] = []
            for line in block.split(separator: "\n") {
                if line.hasPrefix("Triggers=") { unit = line.dropFirst("Triggers=".count) }
                guard line.hasPrefix("Paths="), let end = line.lastIndex(of: "("), line.hasSuffix(")") else { continue }
                paths.append(line[..<end].dropFirst("Paths=".count).dropLast())
            }
            guard let unit, !unit.isEmpty else { continue }
            units += paths.map { PathUnit(unit: String(unit), path: String($0)) }
            guard units.count < most else { return Array(units.prefix(most)) }
        }
        return units
    }
}

extension Session {
    /// The loaded path units of the service manager that runs the daemon; none if there is no service manager.
    var pathUnits: [PathUnit] {
        guard let systemctl = context.program("systemctl"), let isPersonal = isPersonalDaemon else { return [] }
        let arguments = (isPersonal ? ["--user"] : []) + ["show", "--property=Triggers,Paths", "*.path"]
        guard case .ended(0, let output, _) = context.child(systemctl, arguments, .collected) else { return [] }
        return PathUnit.parse(output)
    }
}
