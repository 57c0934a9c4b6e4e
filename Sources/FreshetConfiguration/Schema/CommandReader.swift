import FreshetPipelines

/// Reads the key `exec`: a program with its arguments.
struct CommandReader {
    let reader: DefinitionReader

    func command(in section: Section) -> [String]? {
        guard let entry = section["exec"] else { return nil }
        guard case .sequence(let nodes) = entry.value.content else {
            reader.addError(
                entry.value.location, section.path("exec"), "'exec' has to be a list, not \(entry.value.kind)",
                remedy: "write [/usr/bin/program, argument]; Freshet uses no shell to split a line into words")
            return nil
        }
        guard let program = nodes.first else {
            reader.addError(
                entry.value.location, section.path("exec"), "'exec' is an empty list",
                remedy: "add the path of a program")
            return nil
        }
        let path = reader.value(of: program, key: "exec", keyPath: section.path("exec"), .absolutePath)
        let arguments = nodes.dropFirst().map {
            reader.value(of: $0, key: "exec", keyPath: section.path("exec"), .argument)
        }
        guard let path else { return nil }
        return [path] + arguments.compactMap { $0 }
    }
}

extension ValueKind where Value == String {
    /// An argument of a command, which may be empty if it is quoted.
    fileprivate static let argument = ValueKind(name: "text", read: ValueKind.text.read)
}
